-- The state of the engine and of this plugin, as the statusline shows it.
local M = {}

local states = {} ---@type table<integer, table> by client
local snoozed_until = 0

-- `User MercuryStatus`: something that the statusline shows has changed.
function M.announce()
  vim.api.nvim_exec_autocmds("User", { pattern = "MercuryStatus", modeline = false })
  vim.cmd.redrawstatus()
end

-- A suggestion that the engine was not ready for is asked for again.
function M.changed(id, params)
  local was_ready = (states[id] or {}).state == "ready"
  states[id] = params
  M.announce()
  if params.state == "ready" then
    require("mercury.ghost").refresh(vim.api.nvim_get_current_buf())
    if not was_ready then
      require("mercury.nextedit").refresh()
    end
  end
end

local function wishes(id, wish)
  local told = states[id] or {}
  return told.state == "ready" and told[wish] == true
end

-- Whether next edits are to be asked for at once: a model that rewrites is ready, at no price for each.
function M.is_eager(id)
  return wishes(id, "eager")
end

-- Whether they are also to be asked for where the user rests: a model that rewrites lines is ready.
function M.is_asked_at_rest(id)
  return wishes(id, "atRest")
end

function M.forget(id)
  states[id] = nil
  M.announce()
end

function M.snooze(minutes)
  snoozed_until = vim.uv.now() + minutes * 60000
  M.announce()
end

-- A table: `state` is "off", "snoozed" or what the server says of its engine; its fields are there too.
function M.info(buf)
  local client = require("mercury.client").all(buf)[1]
  if not client then
    return { state = "off", detail = "no server is attached to this buffer" }
  end
  local told = states[client.id] or { state = "starting", detail = "" }
  local off = require("mercury.quiet").switched_off(buf)
  if off then
    return vim.tbl_extend("force", told, { state = "disabled", detail = off })
  end
  local left = snoozed_until - vim.uv.now()
  if left > 0 then
    return vim.tbl_extend("force", told, { state = "snoozed", detail = ("%d min"):format(math.ceil(left / 60000)) })
  end
  return told
end

-- For a statusline: "mercury", with its state wherever that is not simply ready, and nothing without a server.
function M.text(buf)
  local info = M.info(buf)
  if info.state == "off" then
    return ""
  elseif info.state == "disabled" then
    return "mercury: off"
  elseif info.state == "ready" then
    return "mercury"
  elseif info.state == "snoozed" then
    return "mercury: snoozed " .. info.detail
  end
  return "mercury: " .. info.state
end

return M
