-- A question of the server waits for `:Mercury answer`: a dialog that opened by itself would take somebody's keys.
local say = require("mercury.say").say

local M = {}

local waiting = {} ---@type { client: integer, params: table, thread: thread }[]

-- Runs as the handler of a request, which Neovim answers with what this returns, whenever that is.
function M.put(params, client)
  say((":Mercury answer – %s"):format((params.message:gsub("^mercury: ", ""))))
  table.insert(waiting, { client = client, params = params, thread = coroutine.running() })
  return coroutine.yield()
end

-- Lets the user choose an answer to the oldest question.
function M.answer()
  local question = waiting[1]
  if not question then
    return say("there is no question")
  end
  local function title(action)
    return action.title
  end
  local options = { prompt = (question.params.message:gsub("^mercury: ", "")), format_item = title }
  vim.ui.select(question.params.actions or {}, options, function(action)
    if action and waiting[1] == question then
      table.remove(waiting, 1)
      coroutine.resume(question.thread, action)
    end
  end)
end

-- A server that has ended waits for no answer.
function M.forget(client)
  waiting = vim.tbl_filter(function(question)
    return question.client ~= client
  end, waiting)
end

return M
