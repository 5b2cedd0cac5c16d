-- What both client configurations have in common.
local M = {}

function M.named(name, init_options)
  return {
    cmd = { "mercury-ls", "--stdio" },
    root_markers = { ".mercury.toml", ".git", ".hg", "pyproject.toml", "package.json", "Cargo.toml", "go.mod" },
    init_options = init_options,
    capabilities = {
      textDocument = { inlineCompletion = { dynamicRegistration = false } },
      experimental = { mercury = { names = true, grows = true, version = require("mercury.version").plugin } },
    },
    reuse_client = function(client, config)
      return require("mercury.client").shares(client, config)
    end,
    on_init = function(client)
      require("mercury.client").begun(client)
    end,
    before_init = function()
      require("mercury.client").hush(name)
    end,
    handlers = {
      ["window/showMessage"] = function(_, params)
        local level = vim.log.levels[({ "ERROR", "WARN" })[params.type] or "INFO"]
        require("mercury.say").say((params.message:gsub("^mercury: ", "")), level)
      end,
      ["mercury/didChangeStatus"] = function(_, params, context)
        require("mercury.status").changed(context.client_id, params)
      end,
      ["mercury/didGrow"] = function(_, params)
        require("mercury.client").grown(params.uri)
      end,
      ["mercury/didChangePlaces"] = function()
        require("mercury.nextedit").places_changed()
      end,
      ["mercury/names"] = function(...)
        return require("mercury.names").answer(...)
      end,
    },
    on_exit = function(code, signal, id)
      require("mercury.client").exited(name, code, signal, id)
    end,
  }
end

return M
