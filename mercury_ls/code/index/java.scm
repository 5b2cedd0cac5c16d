(local_variable_declaration
  type: (_) @type (#not-eq? @type "var")
  declarator: (variable_declarator name: (identifier) @name))
(variable_declarator name: (identifier) @name value: (_) @value)
(field_declaration type: (_) @type declarator: (variable_declarator name: (identifier) @name))
(formal_parameter type: (_) @type name: (identifier) @name)
(resource type: (_) @type (#not-eq? @type "var") name: (identifier) @name)
(resource name: (identifier) @name value: (_) @value)
(catch_formal_parameter (catch_type . (_) @type .) name: (identifier) @name)
(enhanced_for_statement type: (_) @type (#not-eq? @type "var") name: (identifier) @name)
(enhanced_for_statement name: (identifier) @name value: (_) @element)
(instanceof_expression right: (_) @type name: (identifier) @name)
(method_declaration type: (_) @returns name: (identifier) @name)
(class_declaration name: (identifier) @name superclass: (superclass (_) @base))
(class_declaration name: (identifier) @name interfaces: (super_interfaces (type_list (_) @base)))
(interface_declaration name: (identifier) @name (extends_interfaces (type_list (_) @base)))

(parenthesized_expression (_) @same) @expression
(object_creation_expression type: (_) @new) @expression
(method_invocation !object name: (identifier) @called) @expression
(method_invocation object: (_) @object name: (identifier) @method) @expression
(field_access object: (_) @object field: (identifier) @member) @expression
(array_access array: (_) @container) @expression
(cast_expression type: (_) @cast) @expression
[(decimal_integer_literal) (decimal_floating_point_literal) (string_literal) (true) (false)] @literal
(null_literal) @nothing
