(short_var_declaration
  left: (expression_list . (identifier) @name .)
  right: (expression_list . (_) @value .))
(assignment_statement
  left: (expression_list . [(identifier) @name (selector_expression field: (field_identifier) @name)] .)
  right: (expression_list . (_) @value .))
(var_spec . name: (identifier) @name . type: (_) @type)
(var_spec . name: (identifier) @name value: (expression_list . (_) @value .))
(parameter_declaration name: (identifier) @name type: (_) @type)
(field_declaration name: (field_identifier) @name type: (_) @type)
(range_clause left: (expression_list . (_) . (identifier) @name .) right: (_) @element)
(function_declaration name: (identifier) @name result: (_) @returns)
(method_declaration name: (field_identifier) @name result: (_) @returns)
(method_elem name: (field_identifier) @name result: (_) @returns)

(parenthesized_expression (_) @same) @expression
(unary_expression operand: (_) @same) @expression
(composite_literal type: (_) @new) @expression
(type_assertion_expression type: (_) @cast) @expression
(call_expression function: (_) @called) @expression
(selector_expression operand: (_) @object field: (field_identifier) @member) @expression
(index_expression operand: (_) @container) @expression
[(interpreted_string_literal) (raw_string_literal) (int_literal) (float_literal) (true) (false)] @literal
(nil) @nothing
