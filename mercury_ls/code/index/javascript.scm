; inherits: ecma
(field_definition property: (_) @name value: (_) @value)
(class_declaration name: (_) @name (class_heritage (_) @base))
