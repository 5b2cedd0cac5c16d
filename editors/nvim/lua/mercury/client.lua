-- Our language clients: which one speaks in a buffer, by which face, and what happens when one dies.
local options = require("mercury.options")
local saying = require("mercury.say")

local M = {}

-- In the order of precedence: where both are attached, only the first shows ghost text.
M.names = { "mercury", "mercury-copilot" }

local WINDOW_MS, MOST_CRASHES = 60000, 3
local crashes = {} ---@type integer[]
local leaving = {} ---@type table<integer, true> clients that somebody wanted to stop
local joining = {} ---@type table<integer, table[]> folders of clients that are starting
local ended = {} ---@type table<integer, { code: integer, signal: integer }> how clients have ended

local function ours(client)
  return client ~= nil and vim.list_contains(M.names, client.name)
end

-- All our clients of a buffer, or of all buffers, those of the first name first.
function M.all(buf)
  local found = {}
  for _, name in ipairs(M.names) do
    vim.list_extend(found, vim.lsp.get_clients({ bufnr = buf, name = name }))
  end
  return found
end

-- The one client whose ghost text is shown in a buffer.
function M.speaker(buf)
  for _, client in ipairs(M.all(buf)) do
    if client.server_capabilities and client.server_capabilities.inlineCompletionProvider then
      return client
    end
  end
end

-- The one client that is asked for next edits; beside `mercury-copilot` another plugin shows them.
function M.editor(buf)
  if #vim.lsp.get_clients({ bufnr = buf, name = "mercury-copilot" }) == 0 then
    return vim.lsp.get_clients({ bufnr = buf, name = "mercury" })[1]
  end
end

-- Who is to draw ghost text: "native", "own" or nobody ("off"). Neovim's own waits 200 ms after each key, which nothing
-- can shorten; where its user has turned it on for everything, they have keys for it too.
function M.chosen_face()
  local chosen, native = options.current.ghost, vim.lsp.inline_completion
  if chosen == "off" then
    return "off"
  elseif native and (chosen == "native" or chosen == "auto" and native.is_enabled()) then
    return "native"
  end
  return "own"
end

-- Who draws it in a buffer.
function M.face(buf)
  return M.speaker(buf) and M.chosen_face() or "off"
end

-- The server has more of what it answered, or something at last.
function M.grown(uri)
  local buf = vim.api.nvim_get_current_buf()
  local face = M.face(buf)
  local is_typing = vim.startswith(vim.api.nvim_get_mode().mode, "i")
  if face ~= "off" and is_typing and vim.uri_from_bufnr(buf) == uri then
    require(face == "own" and "mercury.ghost" or "mercury.native").grown(buf)
  end
end

-- Neovim's inline completion serves exactly the client that speaks, and only where it is the face.
local function settle(buf)
  if not vim.lsp.inline_completion or not vim.api.nvim_buf_is_valid(buf) then
    return
  end
  local native = require("mercury.native")
  local speaker, face = M.speaker(buf), M.face(buf)
  if face == "native" then
    native.enable(speaker, buf)
    native.listen(buf)
  end
  for _, client in ipairs(M.all(buf)) do
    if client ~= speaker or face ~= "native" then
      native.disable(client, buf)
    end
  end
end

-- A project with settings of its own has a server of its own: they hold for all that a server serves.
local function has_settings(root)
  return root ~= nil and vim.uv.fs_stat(vim.fs.joinpath(root, ".mercury.toml")) ~= nil
end

local function add_folder(client, root)
  local folder = { uri = vim.uri_from_fname(root), name = root }
  client.workspace_folders = client.workspace_folders or {}
  table.insert(client.workspace_folders, folder)
  if client.initialized then
    client:notify("workspace/didChangeWorkspaceFolders", { event = { added = { folder }, removed = {} } })
  else
    joining[client.id] = joining[client.id] or {}
    table.insert(joining[client.id], folder)
  end
end

-- Whether a client serves another project as well: one process is enough for all, and it is there at once.
function M.shares(client, config)
  local root = config.root_dir
  if client.name ~= config.name or client:is_stopped() then
    return false
  end
  for _, folder in ipairs(client.workspace_folders or {}) do
    if folder.name == root then
      return true
    end
  end
  if has_settings(root) or has_settings(client.config.root_dir) then
    return false
  end
  if root then
    add_folder(client, root)
  end
  return true
end

-- What was opened while the server was starting joins it before its first file is opened there.
function M.begun(client)
  local folders = joining[client.id]
  joining[client.id] = nil
  if folders then
    client:notify("workspace/didChangeWorkspaceFolders", { event = { added = folders, removed = {} } })
  end
end

function M.attached(id, buf)
  local client = vim.lsp.get_client_by_id(id)
  if not client or not ours(client) then
    return
  end
  M.begun(client)
  require("mercury.ghost")
  require("mercury.nextedit")
  local complaint = require("mercury.version").complaint(client.server_info)
  if complaint and not client.mercury_compared then
    saying.say(complaint, vim.log.levels.WARN)
  end
  client.mercury_compared = true
  if vim.lsp.inline_completion and not client.mercury_guarded then
    client.mercury_guarded = true
    require("mercury.native").guard(client)
  end
  vim.schedule(function() -- Neovim's own capabilities come after this event
    settle(buf)
    require("mercury.status").announce()
    require("mercury.ghost").refresh(buf)
  end)
end

-- Takes everything of ours off the screen, and forgets it.
function M.hide()
  if vim.lsp.inline_completion then
    require("mercury.native").clear(vim.api.nvim_get_current_buf())
  end
  require("mercury.ghost").clear()
  require("mercury.nextedit").clear()
end

function M.detached(id, buf)
  if not ours(vim.lsp.get_client_by_id(id)) then
    return
  end
  M.hide()
  vim.schedule(function()
    settle(buf)
  end)
end

local function too_often()
  local now = vim.uv.now()
  table.insert(crashes, now)
  crashes = vim.tbl_filter(function(moment)
    return now - moment < WINDOW_MS
  end, crashes)
  return #crashes > MOST_CRASHES
end

-- Starts the server again for every buffer that it serves.
local function start(name)
  if vim.lsp.is_enabled(name) then
    vim.lsp.enable(name)
  end
end

-- The program of a configuration, where that is a command.
function M.program(name)
  local cmd = (vim.lsp.config[name] or {}).cmd
  return type(cmd) == "table" and cmd[1] or nil
end

-- Neovim itself writes only into its log that there is no such program.
function M.look_for_program(name)
  saying.after_start(function()
    local program = M.program(name)
    if program and vim.fn.executable(program) == 0 then
      saying.say(("%s is not found; see :checkhealth mercury"):format(program), vim.log.levels.WARN)
    end
  end)
end

-- Neovim's own word on a server that died is longer than many screens are wide, and would wait for ENTER.
function M.hush(name)
  for _, client in ipairs(vim.lsp.get_clients({ name = name, _uninitialized = true })) do
    local exit = client._on_exit
    if type(exit) == "function" and not rawget(client, "_on_exit") then
      client._on_exit = function(self, code, signal)
        ended[self.id] = { code = code, signal = signal }
        exit(self, 0, 0)
      end
    end
  end
end

-- A server that died is started again, unless it dies again and again.
function M.exited(name, code, signal, id)
  if ended[id] then
    code, signal, ended[id] = ended[id].code, ended[id].signal, nil
  end
  local wanted = leaving[id] or vim.v.exiting ~= vim.NIL or (code == 0 and signal == 0)
  leaving[id] = nil
  vim.schedule(function()
    require("mercury.status").forget(id)
    M.hide()
    if wanted then
      return
    end
    local how = signal ~= 0 and ("by signal %d"):format(signal) or ("with code %d"):format(code)
    if not options.current.restart then
      saying.say(("the server exited %s: run `:Mercury restart`"):format(how), vim.log.levels.WARN)
    elseif too_often() then
      saying.say(("%s keeps dying; see :Mercury log, then :Mercury restart"):format(name), vim.log.levels.ERROR)
    else
      saying.say(("the server exited %s: restarting it"):format(how), vim.log.levels.WARN)
      start(name)
    end
  end)
end

-- Stops our clients and starts them again, those that died too, with the configuration as it is now.
function M.restart()
  crashes = {}
  for _, client in ipairs(M.all()) do
    leaving[client.id] = true
    client:stop(true)
  end
  local timer = assert(vim.uv.new_timer())
  timer:start(0, 20, vim.schedule_wrap(function()
    if #M.all() == 0 and not timer:is_closing() then
      timer:close()
      vim.tbl_map(start, M.names)
    end
  end))
end

return M
