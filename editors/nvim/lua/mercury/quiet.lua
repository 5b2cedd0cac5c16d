-- When nothing is to be shown: while something else has the user's attention or their keys.
local options = require("mercury.options")

local M = {}

local off = {} ---@type table<string, true> languages, and "" for all of them

-- Switches suggestions off or on again, for one language or for all; returns whether they are on now.
function M.toggle(language)
  local key = language or ""
  off[key] = not off[key] or nil
  return not off[key]
end

-- Why the user has switched suggestions off in a buffer; nil where they have not.
function M.switched_off(buf)
  local language = vim.bo[buf].filetype
  if off[""] then
    return "suggestions are off; `:Mercury toggle` turns them on"
  elseif off[language] then
    return ("suggestions are off for %s; `:Mercury toggle %s` turns them on"):format(language, language)
  end
end

local function plugin_says(module, question)
  local plugin = package.loaded[module]
  local ask = type(plugin) == "table" and plugin[question]
  if type(ask) ~= "function" then
    return false
  end
  local ok, answer = pcall(ask)
  return ok and answer and true or false
end

function M.menu_is_open()
  return vim.fn.pumvisible() == 1 or plugin_says("blink.cmp", "is_visible") or plugin_says("cmp", "visible")
end

function M.in_snippet()
  return vim.snippet.active() or plugin_says("luasnip", "in_snippet")
end

local function several_cursors(buf)
  return vim.b[buf].visual_multi == 1 or plugin_says("multicursor-nvim", "hasCursors")
end

-- Why no suggestion belongs into this buffer at all; nil where it may.
function M.unfit(buf)
  local bo = vim.bo[buf]
  if bo.buftype ~= "" then
    return "a special buffer"
  elseif not bo.modifiable or bo.readonly then
    return "the buffer is not modifiable"
  end
end

-- Why nothing is to be shown right now; nil where it may.
function M.reason(buf)
  local unfit = M.unfit(buf) or M.switched_off(buf)
  if unfit then
    return unfit
  elseif vim.fn.reg_recording() ~= "" or vim.fn.reg_executing() ~= "" then
    return "a macro is being recorded or executed"
  elseif M.in_snippet() then
    return "a snippet is active"
  elseif several_cursors(buf) then
    return "there are several cursors"
  elseif options.current.popup_menu == "hide" and M.menu_is_open() then
    return "the completion menu is open"
  end
end

return M
