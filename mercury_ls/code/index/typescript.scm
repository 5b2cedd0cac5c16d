; inherits: ecma
(variable_declarator name: (identifier) @name type: (type_annotation (_) @type))
(required_parameter pattern: (identifier) @name type: (type_annotation (_) @type))
(required_parameter pattern: (identifier) @name value: (_) @value)
(required_parameter [(accessibility_modifier) "readonly"] @field pattern: (identifier) @name)
(optional_parameter pattern: (identifier) @name type: (type_annotation (_) @type))
(public_field_definition name: (_) @name type: (type_annotation (_) @type))
(public_field_definition name: (_) @name value: (_) @value)
(property_signature name: (_) @name type: (type_annotation (_) @type))
(function_declaration name: (_) @name return_type: (type_annotation (_) @returns))
(function_signature name: (_) @name return_type: (type_annotation (_) @returns))
(method_definition name: (_) @name return_type: (type_annotation (_) @returns))
(method_definition "get" @property name: (_) @name)
(method_signature name: (_) @name return_type: (type_annotation (_) @returns))
(abstract_method_signature name: (_) @name return_type: (type_annotation (_) @returns))
(class_declaration name: (_) @name (class_heritage (extends_clause value: (_) @base)))
(abstract_class_declaration name: (_) @name (class_heritage (extends_clause value: (_) @base)))
(class_declaration name: (_) @name (class_heritage (implements_clause (_) @base)))
(abstract_class_declaration name: (_) @name (class_heritage (implements_clause (_) @base)))
(interface_declaration name: (_) @name (extends_type_clause type: (_) @base))

(as_expression . (_) . (_) @cast) @expression
(satisfies_expression . (_) @same) @expression
(non_null_expression (_) @same) @expression
