-- `:checkhealth mercury`: is everything in place, and what to do where something is not.
local client_of = require("mercury.client")
local options = require("mercury.options")

local M = {}

local health = vim.health

local function check_editor()
  health.start("mercury: Neovim")
  health.ok(("version %s"):format(tostring(vim.version())))
  local native = vim.lsp.inline_completion ~= nil
  if options.current.ghost == "native" and not native then
    health.warn("ghost = native, but this Neovim has no inline completion", "use 0.12, or ghost = auto")
  end
  local face = native and options.current.ghost ~= "own" and "Neovim's own inline completion" or "the plugin itself"
  health.info(("ghost text: %s"):format(options.current.ghost == "off" and "off" or "by " .. face))
end

local function check_program()
  health.start("mercury: the server")
  local config = vim.lsp.config.mercury
  local program = type(config.cmd) == "table" and config.cmd[1] or "mercury-ls"
  if vim.fn.executable(program) == 0 then
    health.error(("%s is not found"):format(program), {
      "install it: `uv tool install mercury-ls`, or `pip install .` in a clone",
      "or name it: `vim.lsp.config('mercury', { cmd = { '/path/to/mercury-ls', '--stdio' } })`",
    })
    return
  end
  health.ok(("%s is %s"):format(program, vim.fn.exepath(program)))
  local doctor = { program, "doctor" }
  if type(config.cmd) == "table" and config.cmd[#config.cmd] == "--stdio" then
    doctor = vim.list_extend(vim.list_slice(config.cmd, 1, #config.cmd - 1), { "doctor" })
  end
  local found = vim.system(doctor, { text = true }):wait(20000)
  local report = found.code == 0 and health.info or health.warn
  report(("%s: %s"):format(table.concat(doctor, " "), vim.trim(found.stdout .. found.stderr)))
end

local function check_clients()
  health.start("mercury: clients")
  local clients = client_of.all()
  if #clients == 0 then
    local enabled = vim.lsp.is_enabled("mercury") or vim.lsp.is_enabled("mercury-copilot")
    health.warn("no server is running", enabled and "open a file" or "vim.lsp.enable('mercury')")
  end
  for _, client in ipairs(clients) do
    local info = require("mercury.status").info(next(client.attached_buffers))
    health.ok(("%s: %s, %d buffers"):format(client.name, info.state, vim.tbl_count(client.attached_buffers)))
  end
  for _, client in ipairs(vim.lsp.get_clients()) do
    local other = not vim.list_contains(client_of.names, client.name)
    if other and client.server_capabilities.inlineCompletionProvider then
      health.warn(("%s offers inline completion too"):format(client.name), {
        ("vim.lsp.inline_completion.enable(false, { client_id = %d })"):format(client.id),
      })
    end
  end
end

function M.check()
  check_editor()
  check_program()
  check_clients()
end

return M
