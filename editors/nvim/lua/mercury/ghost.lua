-- Our own ghost text: asked for at every keystroke, newest wins; typed through without ever leaving the screen.
local asking = require("mercury.asking").new()
local client_of = require("mercury.client")
local options = require("mercury.options")
local quiet = require("mercury.quiet")
local suggestion = require("mercury.suggestion")

local M = {}

local METHOD = "textDocument/inlineCompletion"
local INVOKED, AUTOMATIC = 1, 2
local space = vim.api.nvim_create_namespace("mercury.ghost")

local offered = {} ---@type mercury.Suggestion[] what the newest answer offered
local chosen = 1
local asked_for = AUTOMATIC

local function virtual_lines(text)
  local lines = {}
  for line in vim.gsplit(text, "\n", { plain = true }) do
    table.insert(lines, { { line, "MercuryGhost" } })
  end
  return vim.list_slice(lines, 2)
end

-- The marks that show a rest: pieces around what stays, or the new text behind what goes.
local function marks(rest)
  local first = rest.text:match("^[^\n]*")
  local below = virtual_lines(rest.text)
  local pieces = suggestion.pieces(rest.text, rest.between)
  if pieces then
    pieces = #pieces > 0 and pieces or { { #rest.between, "" } }
    return vim.tbl_map(function(piece)
      local last = piece == pieces[#pieces]
      return {
        rest.col + piece[1],
        {
          virt_text = { { piece[2], "MercuryGhost" } },
          virt_text_pos = "inline",
          hl_mode = "combine",
          virt_lines = last and #below > 0 and below or nil,
        },
      }
    end, pieces)
  end
  local stop = rest.col + #rest.between
  return {
    { stop, { virt_text = { { first, "MercuryGhost" } }, virt_text_pos = "inline", virt_lines = below } },
    { rest.col, { end_col = stop, hl_group = "MercuryDelete" } },
  }
end

-- Marks keep their ids, so that what is on the screen is replaced and never missing in between.
local function draw(buf, rest)
  local wanted = marks(rest)
  for id, mark in ipairs(wanted) do
    vim.api.nvim_buf_set_extmark(buf, space, rest.row, mark[1], vim.tbl_extend("error", mark[2], { id = id }))
  end
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buf, space, 0, -1, {})) do
    if mark[1] > #wanted then
      vim.api.nvim_buf_del_extmark(buf, space, mark[1])
    end
  end
end

local function hide()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    vim.api.nvim_buf_clear_namespace(buf, space, 0, -1)
  end
  offered, chosen = {}, 1
end

function M.clear()
  asking.stop()
  hide()
end

-- What is on the screen, and what of it is left; nil where nothing is.
function M.current()
  local s = offered[chosen]
  local rest = s and suggestion.rest(s)
  if rest then
    return s, rest
  end
end

local function show()
  local s, rest = M.current()
  if s and not quiet.reason(s.buf) then
    draw(s.buf, rest)
    suggestion.report_shown(s)
  else
    hide()
  end
end

local function in_insert_mode()
  return vim.startswith(vim.api.nvim_get_mode().mode, "i")
end

local function answered(client, buf, asked, items, index)
  if buf ~= vim.api.nvim_get_current_buf() or not in_insert_mode() then
    return hide()
  end
  local made = {}
  for _, item in ipairs(items) do
    local s = suggestion.new(client, buf, item, asked)
    if s and suggestion.rest(s) then
      table.insert(made, s)
    end
  end
  offered, chosen = made, math.max(1, math.min(index, #made))
  show()
end

local function ask(buf, kind, index)
  local client = client_of.speaker(buf)
  if not client or quiet.reason(buf) then
    return
  end
  asked_for = kind
  local asked = suggestion.place(buf)
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = kind }
  asking.ask(client, METHOD, params, buf, function(err, result)
    answered(client, buf, asked, not err and result and (result.items or result) or {}, index)
  end)
end

-- Shows what is left of the suggestion, and asks for the next as soon as the keys pause.
function M.refresh(buf)
  if client_of.face(buf) ~= "own" or not in_insert_mode() then
    return
  end
  show()
  if quiet.reason(buf) then
    return asking.stop()
  end
  asking.soon(options.current.debounce_ms, function()
    if buf == vim.api.nvim_get_current_buf() and in_insert_mode() then
      ask(buf, AUTOMATIC, 1)
    end
  end)
end

-- There is more of what is on the screen, or something at last: it is asked for again, and what there is stays meanwhile.
function M.grown(buf)
  ask(buf, asked_for, chosen)
end

-- Ask now, and for alternatives too.
function M.suggest(buf)
  ask(buf, INVOKED, 1)
end

-- The next alternative; where there is only one yet, the server is asked for more.
function M.cycle(buf, step)
  if #offered < 2 then
    return ask(buf, INVOKED, 2)
  end
  chosen = (chosen - 1 + step) % #offered + 1
  show()
end

function M.take(part_of)
  local s, rest = M.current()
  if s then
    suggestion.take(s, rest, part_of(rest.text))
    show()
  end
end

function M.dismiss()
  local s = M.current()
  M.clear()
  if s then
    suggestion.reject(s)
  end
end

local group = vim.api.nvim_create_augroup("mercury.ghost", {})
local typing = { "InsertEnter", "TextChangedI", "TextChangedP", "CursorMovedI", "CompleteChanged" }
vim.api.nvim_create_autocmd(typing, {
  group = group,
  callback = function(event)
    M.refresh(event.buf)
  end,
})
vim.api.nvim_create_autocmd({ "InsertLeave", "BufLeave" }, { group = group, callback = M.clear })
vim.api.nvim_create_autocmd({ "RecordingEnter" }, { group = group, callback = M.clear })

return M
