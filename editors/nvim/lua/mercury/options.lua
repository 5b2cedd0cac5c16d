-- What a user may choose, what it may be, and what it is otherwise.
local say = require("mercury.say").say

local M = {}

M.defaults = {
  servers = { "mercury" },
  keys = false,
  ghost = "auto",
  debounce_ms = 25,
  popup_menu = "hide",
  restart = true,
  next_edit = true,
  next_edit_debounce_ms = 100,
}

local choices = {
  ghost = { "auto", "native", "own", "off" },
  popup_menu = { "hide", "show" },
}

M.current = M.defaults

local function problem(name, value)
  local default = M.defaults[name]
  if default == nil then
    local known = vim.tbl_keys(M.defaults)
    table.sort(known)
    return ("unknown; the options are %s"):format(table.concat(known, ", "))
  elseif type(value) ~= type(default) then
    return ("must be a %s, such as %s"):format(type(default), vim.inspect(default))
  elseif choices[name] and not vim.list_contains(choices[name], value) then
    return ("must be one of %s"):format(table.concat(choices[name], ", "))
  end
end

-- Replaces the options whole. What is wrong is said, and everything else applies.
function M.set(given)
  local chosen = vim.deepcopy(M.defaults)
  for name, value in pairs(given) do
    local wrong = problem(name, value)
    if wrong then
      say(("option %s = %s: %s"):format(name, vim.inspect(value), wrong), vim.log.levels.ERROR)
    else
      chosen[name] = value
    end
  end
  M.current = chosen
end

return M
