(variable_declaration (identifier) @name [(user_type) (nullable_type) (function_type)] @type)
(parameter (identifier) @name [(user_type) (nullable_type) (function_type)] @type)
(class_parameter (identifier) @name [(user_type) (nullable_type) (function_type)] @type)
(class_parameter ["val" "var"] @field (identifier) @name)
(property_declaration (variable_declaration (identifier) @name) . "=" . (_) @value)
(when_subject (variable_declaration (identifier) @name) . "=" . (_) @value)
(for_statement (variable_declaration (identifier) @name) . "in" . (_) @element)
(catch_block (identifier) @name (user_type) @type)
(function_declaration
  name: (identifier) @name
  (function_value_parameters) . ":" . [(user_type) (nullable_type) (function_type)] @returns)
(class_declaration name: (identifier) @name (delegation_specifiers (delegation_specifier [
  (user_type) @base
  (constructor_invocation (user_type) @base)
  (explicit_delegation . (user_type) @base)])))
(object_declaration name: (identifier) @name (delegation_specifiers (delegation_specifier [
  (user_type) @base
  (constructor_invocation (user_type) @base)
  (explicit_delegation . (user_type) @base)])))
(type_alias type: (identifier) @name (_) @value)
(function_body "=" . (_) @returned) @expression
(return_expression (_) @returned) @expression

(parenthesized_expression (_) @same) @expression
(unary_expression argument: (_) @same operator: "!!") @expression
(binary_expression left: (_) @same operator: "?:" right: (_) @same) @expression
(as_expression right: (_) @cast) @expression
(call_expression . (_) @called . [(value_arguments) (annotated_lambda)]) @expression
(navigation_expression . (_) @object ["." "?."] . (identifier) @member) @expression
(index_expression . (_) @container) @expression
[(string_literal) (multiline_string_literal) (number_literal) (float_literal) (character_literal)] @literal
((identifier) @literal (#match? @literal "^(true|false)$"))
((identifier) @nothing (#eq? @nothing "null"))
