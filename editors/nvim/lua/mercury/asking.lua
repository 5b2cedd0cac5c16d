-- One question at a time: asked when the keys pause, and void as soon as a newer one is asked or nobody wants to know.
local M = {}

---@class mercury.Asking
---@field soon fun(milliseconds: integer, ask: fun()) runs `ask`, unless called again before
---@field ask fun(client: vim.lsp.Client, method: string, params: table, buf: integer, answered: fun(err, result))
---@field stop fun()
---@field is_waiting fun(): boolean for an answer

---@return mercury.Asking
function M.new()
  local timer = assert(vim.uv.new_timer())
  local pending = nil ---@type { client: vim.lsp.Client, id: integer }?
  local asking = {}

  function asking.soon(milliseconds, ask)
    timer:start(milliseconds, 0, vim.schedule_wrap(ask))
  end

  function asking.stop()
    timer:stop()
    if pending then
      pending.client:cancel_request(pending.id)
      pending = nil
    end
  end

  function asking.is_waiting()
    return pending ~= nil
  end

  function asking.ask(client, method, params, buf, answered)
    asking.stop()
    local mine = {}
    local ok, id = client:request(method, params, function(err, result)
      if pending == mine then
        pending = nil
        answered(err, result)
      end
    end, buf)
    if ok then
      mine.client, mine.id = client, id
      pending = mine
    end
  end

  return asking
end

return M
