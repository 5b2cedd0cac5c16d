(declaration type: (_) @type declarator: [
  (identifier) @name
  (pointer_declarator declarator: (identifier) @name)
  (init_declarator declarator: [(identifier) @name (pointer_declarator declarator: (identifier) @name)])])
(parameter_declaration type: (_) @type declarator: [
  (identifier) @name
  (pointer_declarator declarator: (identifier) @name)])
(field_declaration type: (_) @type declarator: [
  (field_identifier) @name
  (pointer_declarator declarator: (field_identifier) @name)])

(parenthesized_expression (_) @same) @expression
(pointer_expression argument: (_) @same) @expression
(cast_expression type: (_) @cast) @expression
(call_expression function: (_) @called) @expression
(field_expression argument: (_) @object field: (field_identifier) @member) @expression
[(number_literal) (string_literal) (char_literal)] @literal
