; What gives a name its type: an annotation (@type), a value, an iterable whose @element it is, or a context manager.
(assignment
  left: [(identifier) @name (attribute attribute: (identifier) @name)]
  type: (type)? @type
  right: (_)? @value)
(named_expression name: (identifier) @name value: (_) @value)
(typed_parameter . (identifier) @name type: (type) @type)
(typed_default_parameter name: (identifier) @name type: (type) @type)
(default_parameter name: (identifier) @name value: (_) @value)
(for_statement left: (identifier) @name right: (_) @element)
(for_in_clause left: (identifier) @name right: (_) @element)
(with_item value: (as_pattern
  . (_) @entered
  alias: (as_pattern_target [(identifier) @name (attribute attribute: (identifier) @name)])))
(except_clause value: (as_pattern . (_) @type alias: (as_pattern_target (identifier) @name)))

(function_definition name: (identifier) @name return_type: (type)? @returns) @function
(decorated_definition
  (decorator (_) @property (#match? @property "property$"))
  definition: (function_definition name: (identifier) @name))
(class_definition name: (identifier) @name) @class
(class_definition
  name: (identifier) @name
  superclasses: (argument_list [(identifier) (attribute) (subscript) (call)] @base))
(return_statement (_) @returned) @expression

; What an expression is made of.
(parenthesized_expression (_) @same) @expression
(await (_) @awaited) @expression
(conditional_expression . (_) @same (_) (_) @same) @expression
(named_expression value: (_) @same) @expression
(call function: (_) @called) @expression
(call
  function: (_) @_function (#match? @_function "(^|\\.)cast$")
  arguments: (argument_list . (_) @cast)) @expression
(attribute object: (_) @object attribute: (identifier) @member) @expression
(subscript value: (_) @container) @expression
(subscript value: (_) @same subscript: (slice)) @expression
(yield) @yields
[(dictionary) (dictionary_comprehension) (float) (integer) (list) (list_comprehension) (set) (set_comprehension)
 (string) (concatenated_string) (tuple) (generator_expression) (true) (false) (comparison_operator) (lambda)] @literal
(none) @nothing
