(let_declaration pattern: (identifier) @name type: (_) @type)
(let_declaration pattern: (identifier) @name value: (_) @value)
(let_declaration pattern: (mut_pattern (identifier) @name) type: (_) @type)
(let_declaration pattern: (mut_pattern (identifier) @name) value: (_) @value)
(parameter pattern: (identifier) @name type: (_) @type)
(closure_parameters (parameter pattern: (identifier) @name type: (_) @type))
(field_declaration name: (field_identifier) @name type: (_) @type)
(const_item name: (identifier) @name type: (_) @type)
(static_item name: (identifier) @name type: (_) @type)
(for_expression pattern: (identifier) @name value: (_) @element)
(function_item name: (identifier) @name return_type: (_) @returns)
(function_signature_item name: (identifier) @name return_type: (_) @returns)

(parenthesized_expression (_) @same) @expression
(reference_expression value: (_) @same) @expression
(unary_expression (_) @same) @expression
(await_expression (_) @same) @expression
(try_expression (_) @awaited) @expression
(struct_expression name: (_) @new) @expression
(type_cast_expression type: (_) @cast) @expression
(call_expression function: (_) @called) @expression
(field_expression value: (_) @object field: (field_identifier) @member) @expression
(index_expression . (_) @container) @expression
[(integer_literal) (float_literal) (string_literal) (raw_string_literal) (boolean_literal) (char_literal)] @literal
