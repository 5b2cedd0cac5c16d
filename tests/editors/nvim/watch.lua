
local spaces = {}
for _, name in ipairs({ "mercury.ghost", "nvim.lsp.inline_completion" }) do
  spaces[name] = vim.api.nvim_create_namespace(name)
end
local function text(chunks)
  return table.concat(vim.tbl_map(function(chunk) return chunk[1] end, chunks or {}))
end
function _G.ghosts(name)
  local found = {}
  for space, id in pairs(spaces) do
    for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, id, 0, -1, { details = true })) do
      if not name or name == space then
        local lines = vim.tbl_map(text, mark[4].virt_lines or {})
        if mark[4].virt_text then
          found[#found + 1] = { mark[2], mark[3], table.concat({ text(mark[4].virt_text), unpack(lines) }, "\n") }
        end
      end
    end
  end
  return found
end
_G.frames = {}
vim.api.nvim_set_decoration_provider(vim.api.nvim_create_namespace("test.frames"), {
  on_win = function()
    local marks = _G.ghosts()
    local row = vim.api.nvim_win_get_cursor(0)[1] - 1
    local line = vim.api.nvim_buf_get_lines(0, row, row + 1, false)[1]
    local ghost = marks[1] and marks[1][3] or ""
    table.insert(_G.frames, { line, ghost })
  end,
})
local function place()
  local cursor = vim.api.nvim_win_get_cursor(0)
  return table.concat({ vim.api.nvim_get_current_buf(), vim.b.changedtick, unpack(cursor) }, ":")
end
local waiting, answered = {}, nil
_G.asked, _G.turns = 0, {}
vim.api.nvim_create_autocmd("LspRequest", {
  callback = function(event)
    local request, id = event.data.request, event.data.client_id .. ":" .. event.data.request_id
    if request.method ~= "textDocument/inlineCompletion" then
      return
    elseif request.type == "pending" then
      _G.asked = _G.asked + 1
      waiting[id] = place()
    elseif request.type == "cancel" then
      waiting[id] = nil
    elseif waiting[id] then
      vim.schedule(function() -- the handler comes first
        answered = waiting[id]
        table.insert(_G.turns, _G.ghosts())
      end)
    end
  end,
})
vim.api.nvim_create_autocmd("InsertLeave", {
  callback = function()
    waiting, answered = {}, nil
  end,
})
function _G.settled()
  return answered == place()
end
_G.notes = {}
local notify = vim.notify
vim.notify = function(message, ...)
  table.insert(_G.notes, message)
  return notify(message, ...)
end
vim.notify_once = vim.notify
