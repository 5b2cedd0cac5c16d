-- What users map keys to and put into their statusline.
local client_of = require("mercury.client")
local keys = require("mercury.keys")
local options = require("mercury.options")
local quiet = require("mercury.quiet")
local suggestion = require("mercury.suggestion")

local M = {}

-- Chooses options and enables the servers that they name; without it the defaults hold and nothing is enabled.
function M.setup(given)
  options.set(given or {})
  if options.current.keys then
    keys.map(M)
  end
  if #options.current.servers > 0 then
    vim.lsp.enable(options.current.servers)
    client_of.look_for_program(options.current.servers[1])
  end
end

local function face()
  local buf = vim.api.nvim_get_current_buf()
  local name = client_of.face(buf)
  return name ~= "off" and require(name == "own" and "mercury.ghost" or "mercury.native") or nil, buf
end

local function current()
  local shown, buf = face()
  if shown then
    return shown.current(buf)
  end
end

-- Whether ghost text is on the screen that accepting would insert.
function M.visible()
  return current() ~= nil
end

local function take(part_of)
  local shown, buf = face()
  if not M.visible() then
    return false
  end
  shown.take(part_of, buf)
  return true
end

function M.accept()
  return take(function(text)
    return text
  end)
end

function M.accept_word()
  return take(suggestion.word)
end

function M.accept_line()
  return take(suggestion.first_line)
end

local function cycle(step)
  local shown, buf = face()
  if shown then
    shown.cycle(buf, step)
  end
end

function M.next()
  cycle(1)
end

function M.prev()
  cycle(-1)
end

-- Asks now, alternatives included. Neovim's own inline completion asks by itself only.
function M.suggest()
  local buf = vim.api.nvim_get_current_buf()
  if client_of.face(buf) == "own" then
    require("mercury.ghost").suggest(buf)
  end
end

-- Takes ghost text, or a next edit, off the screen and tells the server that it was not wanted.
function M.dismiss()
  local shown, buf = face()
  if M.visible() then
    shown.dismiss(buf)
    return true
  end
  return require("mercury.nextedit").dismiss()
end

-- Jumps to the next edit where it is out of sight, and makes it otherwise.
function M.next_edit()
  return require("mercury.nextedit").accept()
end

-- The same for the nearest part of it; the rest stays on offer.
function M.next_edit_one()
  return require("mercury.nextedit").accept_one()
end

-- Opens the list of all edits that are on offer, to look at them and to leave some out.
function M.preview()
  return require("mercury.nextedit").preview()
end

-- Takes back the next edit that was made last, in all of its files.
function M.undo()
  require("mercury.nextedit").undo()
end

function M.toggle(language)
  require("mercury.command").toggle(language)
end

function M.snooze(minutes)
  require("mercury.command").snooze(minutes)
end

function M.status()
  return require("mercury.status").text(vim.api.nvim_get_current_buf())
end

function M.status_info()
  return require("mercury.status").info(vim.api.nvim_get_current_buf())
end

-- Tab is for indenting where only white space is before the cursor and the suggestion begins with more of it.
local function indents()
  local _, rest = current()
  local before = vim.api.nvim_get_current_line():sub(1, vim.api.nvim_win_get_cursor(0)[2])
  return before:match("^%s*$") and rest and rest.text:match("^[ \t]")
end

local ready = {
  accept = function()
    return M.visible() and not quiet.menu_is_open() and not indents()
  end,
  next_edit = function()
    return require("mercury.nextedit").visible()
  end,
  dismiss = function()
    return M.visible() or require("mercury.nextedit").visible()
  end,
}
ready.accept_word, ready.accept_line, ready.next, ready.prev = ready.accept, ready.accept, ready.accept, ready.accept
ready.next_edit_one, ready.preview = ready.next_edit, ready.next_edit

-- For `expr` mappings: the action where there is something for it to act on, and the key's own meaning otherwise.
-- A menu, a snippet and indentation come before a suggestion.
function M.or_key(action, key)
  local acts = assert(ready[action], ("mercury: or_key(%q): no such action"):format(action))
  local function chosen()
    if vim.fn.mode() == "i" and key == "<Tab>" and vim.snippet.active({ direction = 1 }) then
      return "<Cmd>lua vim.snippet.jump(1)<CR>"
    elseif acts() then
      return ("<Cmd>lua require('mercury').%s()<CR>"):format(action)
    end
    return key
  end
  keys.actions[chosen] = action
  return chosen
end

return M
