(variable_declaration
  type: (_) @type (#not-eq? @type "var")
  (variable_declarator name: (identifier) @name))
(parameter type: (_) @type name: (identifier) @name)
(property_declaration type: (_) @type name: (identifier) @name)
(method_declaration returns: (_) @returns name: (identifier) @name)
(object_creation_expression type: (_) @new) @expression
(invocation_expression function: (_) @called) @expression
(member_access_expression expression: (_) @object name: (identifier) @member) @expression
