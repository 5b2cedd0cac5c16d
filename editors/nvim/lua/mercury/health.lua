-- `:checkhealth mercury`: is everything in place, and what to do where something is not.
local client_of = require("mercury.client")
local keys = require("mercury.keys")
local options = require("mercury.options")

local M = {}

local health = vim.health

local faces = {
  off = 'off: the option ghost is "off"',
  own = "drawn by this plugin, requested %d ms after a key",
  native = "drawn by Neovim's inline completion, requested 200 ms after a key",
}

local function check_editor()
  health.start("mercury: Neovim")
  health.ok(("version %s, this plugin %s"):format(tostring(vim.version()), require("mercury.version").plugin))
  local face = client_of.chosen_face()
  if options.current.ghost == "native" and face ~= "native" then
    health.warn("ghost = native, but this Neovim has no inline completion", "use 0.12, or ghost = auto")
  end
  health.info("ghost text: " .. faces[face]:format(options.current.debounce_ms))
end

local function check_keys()
  health.start("mercury: keys")
  if options.current.keys then
    for _, line in ipairs(keys.report()) do
      local report = line.ok and health.ok or health.warn
      report(line.text)
    end
    return
  end
  health.info("keys = false: `setup({ keys = true })` maps those of `:help mercury-keys`")
  for _, wanted in ipairs({ { "i", "accept" }, { "n", "next_edit" } }) do
    local key = keys.key_of(unpack(wanted))
    if key then
      health.ok(("%s: %s"):format(key, wanted[2]))
    else
      health.warn(("no mapping found for %s"):format(wanted[2]))
    end
  end
end

-- Programs of this name that are not on the path: in virtual environments, and where pip and uv put them.
local function elsewhere(name)
  local folders = { vim.env.VIRTUAL_ENV and vim.env.VIRTUAL_ENV .. "/bin", "~/.local/bin", ".venv/bin", "venv/bin" }
  local found = {}
  for _, folder in pairs(folders) do
    local path = vim.fs.normalize(vim.fn.fnamemodify(vim.fs.joinpath(folder, name), ":p"))
    if vim.fn.executable(path) == 1 then
      table.insert(found, path)
    end
  end
  return found
end

local function not_found(program)
  local remedies = {
    "run `:Mercury install`, or in a clone `pip install . ./models/quicksilver`",
    "or name it: `vim.lsp.config('mercury', { cmd = { '/path/to/mercury-ls', '--stdio' } })`",
  }
  for _, path in ipairs(elsewhere(program)) do
    table.insert(remedies, 1, ("this one exists, and can be named: %s"):format(path))
  end
  health.error(("%s is not found"):format(program), remedies)
  local paths = vim.split(vim.env.PATH or "", vim.fn.has("win32") == 1 and ";" or ":", { trimempty = true })
  health.info("searched $PATH:\n" .. table.concat(paths, "\n"))
end

local function check_program()
  health.start("mercury: the server")
  local config = vim.lsp.config.mercury
  local program = client_of.program("mercury") or "mercury-ls"
  if vim.fn.executable(program) == 0 then
    return not_found(program)
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

local function has_files()
  return vim.iter(vim.api.nvim_list_bufs()):any(function(buf)
    return vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == "" and vim.bo[buf].filetype ~= ""
  end)
end

local function check_clients()
  health.start("mercury: clients")
  local clients = client_of.all()
  if #clients == 0 and not (vim.lsp.is_enabled("mercury") or vim.lsp.is_enabled("mercury-copilot")) then
    health.warn("no server is running", "vim.lsp.enable('mercury')")
  elseif #clients == 0 and has_files() then
    health.warn("no server is running", "`:Mercury log` may say why")
  elseif #clients == 0 then
    health.info("no server is running yet: it starts with the first file")
  end
  for _, client in ipairs(clients) do
    local info = require("mercury.status").info(next(client.attached_buffers))
    local count = vim.tbl_count(client.attached_buffers)
    health.ok(("%s: %s, %d %s"):format(client.name, info.state, count, count == 1 and "buffer" or "buffers"))
    local complaint = require("mercury.version").complaint(client.server_info)
    if complaint then
      health.warn(complaint)
    end
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
  check_keys()
  check_program()
  check_clients()
end

return M
