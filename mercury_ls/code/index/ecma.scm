(variable_declarator name: (identifier) @name value: (_) @value)
(assignment_expression
  left: [(identifier) @name (member_expression property: (_) @name)]
  right: (_) @value)
(for_in_statement left: (identifier) @name operator: "of" right: (_) @element)
(class_declaration name: (_) @name)
(return_statement (_) @returned) @expression
(yield_expression) @yields

(parenthesized_expression (_) @same) @expression
(await_expression (_) @awaited) @expression
(ternary_expression consequence: (_) @same alternative: (_) @same) @expression
(new_expression constructor: (_) @new) @expression
(call_expression function: (_) @called) @expression
(member_expression object: (_) @object property: (_) @member) @expression
(subscript_expression object: (_) @container) @expression
[(array) (arrow_function) (false) (number) (string) (template_string) (true)] @literal
[(null) (undefined)] @nothing
