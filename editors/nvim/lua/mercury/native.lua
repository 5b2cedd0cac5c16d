-- Neovim's own inline completion (0.12), and what it leaves to others: staying quiet, older answers, exact accepting.
local client_of = require("mercury.client")
local quiet = require("mercury.quiet")
local suggestion = require("mercury.suggestion")

local M = {}

local METHOD = "textDocument/inlineCompletion"
local space = vim.api.nvim_create_namespace("nvim.lsp.inline_completion")

local offered = {} ---@type table<integer, mercury.Suggestion[]> by buffer
local visible = {} ---@type table<integer, mercury.Suggestion?> by buffer, the one that was seen last
local pending = {} ---@type table<integer, { client: vim.lsp.Client, id: integer }> by buffer
local last = {} ---@type table<integer, { client: vim.lsp.Client, place: table, again: fun() }> by buffer, what Neovim asked

local function cancel(buf)
  local older = pending[buf]
  pending[buf] = nil
  if older and older.id then
    older.client:cancel_request(older.id)
  end
end

-- The items that still fit the text: Neovim shows an answer without asking whether the text has changed meanwhile, and
-- inserts it with whatever line ends it has.
local function fitting(client, buf, items, asked)
  local kept = {}
  offered[buf], visible[buf] = {}, nil
  for _, item in ipairs(buf == vim.api.nvim_get_current_buf() and items or {}) do
    local s = suggestion.new(client, buf, item, asked)
    if s and suggestion.rest(s) then
      table.insert(kept, vim.tbl_extend("force", item, { insertText = s.text }))
      table.insert(offered[buf], s)
    end
  end
  return kept
end

-- Every request of Neovim's, and none of our own ghost text, goes through here: the newest cancels the one before, and
-- none is made in quiet moments.
local function asked(client, request, params, handler, buf)
  cancel(buf)
  if quiet.reason(buf) then
    offered[buf], visible[buf] = nil, nil
    handler(nil, { items = {} }, { client_id = client.id, bufnr = buf, method = METHOD })
    return false
  end
  local place = suggestion.place(buf)
  last[buf] = {
    client = client,
    place = place,
    again = function()
      asked(client, request, params, handler, buf)
    end,
  }
  local mine = { client = client }
  pending[buf] = mine
  local ok, id = request(client, METHOD, params, function(err, result, context)
    if pending[buf] ~= mine then
      return
    end
    pending[buf] = nil
    local items = not err and result and (result.items or result) or {}
    handler(err, { items = fitting(client, buf, items, place) }, context)
    local seen = M.current(buf)
    if seen then
      suggestion.report_shown(seen)
    end
  end, buf)
  mine.id = id
  return ok, id
end

-- There is more of what is on the screen, or something at last. Neovim asks by itself only, so its last question is put
-- again, unless there is a newer one, or its client speaks no more: Neovim has forgotten that.
function M.grown(buf)
  local question, speaker = last[buf], client_of.speaker(buf)
  local is_newest = question and speaker and question.client.id == speaker.id and not pending[buf]
  if is_newest and vim.deep_equal(question.place, suggestion.place(buf)) then
    question.again()
  end
end

function M.guard(client)
  local request = client.request
  client.request = function(self, method, params, handler, buf)
    if method ~= METHOD or not handler or client_of.face(buf) == "own" then
      return request(self, method, params, handler, buf)
    end
    return asked(self, request, params, handler, buf)
  end
end

-- On for the buffer first: a client that was enabled by itself alone is not let go when it dies. Never twice: that
-- would bring back clients that were taken out.
function M.enable(client, buf)
  local inline = vim.lsp.inline_completion
  for _, filter in ipairs({ { bufnr = buf }, { bufnr = buf, client_id = client.id } }) do
    if not inline.is_enabled(filter) then
      inline.enable(true, filter)
    end
  end
end

-- A request that Neovim has forgotten must not be answered: its answer would find nothing to go into.
function M.disable(client, buf)
  if pending[buf] and pending[buf].client == client then
    cancel(buf)
  end
  vim.lsp.inline_completion.enable(false, { client_id = client.id })
end

-- The text on the screen, and where it begins.
local function shown(buf)
  local mark = vim.api.nvim_buf_get_extmarks(buf, space, 0, -1, { details = true })[1]
  if not mark then
    return nil
  end
  local function joined(chunks)
    return table.concat(vim.tbl_map(function(chunk)
      return chunk[2] == "ComplHintMore" and "" or chunk[1]
    end, chunks or {}))
  end
  local lines = vim.tbl_map(joined, mark[4].virt_lines or {})
  return { row = mark[2], col = mark[3], text = table.concat({ joined(mark[4].virt_text), unpack(lines) }, "\n") }
end

-- The suggestion that was on the screen exactly as it would be inserted, and what is left of it; nil without one.
function M.current(buf)
  local seen = shown(buf)
  for _, s in ipairs(seen and offered[buf] or {}) do
    local rest = suggestion.rest(s)
    if rest and rest.text == seen.text and rest.row == seen.row and rest.col == seen.col then
      visible[buf] = s
    end
  end
  local s = visible[buf]
  local rest = s and suggestion.rest(s)
  if rest then
    return s, rest
  end
end

function M.clear(buf)
  cancel(buf)
  last[buf], offered[buf], visible[buf] = nil, nil, nil
  vim.api.nvim_buf_clear_namespace(buf, space, 0, -1)
end

-- Neovim leaves expired text on the screen until the next answer; what no longer fits is taken away at once.
local function moved(event)
  if client_of.face(event.buf) == "native" and (quiet.reason(event.buf) or not M.current(event.buf)) then
    vim.api.nvim_buf_clear_namespace(event.buf, space, 0, -1)
  end
end

function M.cycle(_, step)
  vim.lsp.inline_completion.select({ count = step })
end

-- Inserted beside Neovim, not through its `get()`: that waits for the event loop, and keys typed meanwhile come first.
function M.take(part_of, buf)
  local s, rest = M.current(buf)
  if s then
    suggestion.take(s, rest, part_of(rest.text))
  end
end

function M.dismiss(buf)
  local s = M.current(buf)
  M.clear(buf)
  if s then
    suggestion.reject(s)
  end
end

-- Listens behind Neovim's own listeners, which are made anew whenever the capability is enabled.
function M.listen(buf)
  local group = vim.api.nvim_create_augroup("mercury.native:" .. buf, {})
  local typing = { "InsertEnter", "CursorMovedI", "TextChangedI", "TextChangedP", "CompleteChanged" }
  vim.api.nvim_create_autocmd(typing, { group = group, buffer = buf, callback = moved })
  vim.api.nvim_create_autocmd("InsertLeave", {
    group = group,
    buffer = buf,
    callback = function()
      M.clear(buf)
    end,
  })
end

return M
