; inherits: c
(declaration type: (_) @type declarator: (reference_declarator (identifier) @name))
(parameter_declaration type: (_) @type declarator: (reference_declarator (identifier) @name))
(for_range_loop type: (_) @type declarator: [(identifier) @name (reference_declarator (identifier) @name)])
(new_expression type: (_) @new) @expression
