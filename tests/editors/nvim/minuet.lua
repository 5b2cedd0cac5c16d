
local key, end_point = ...
vim.env.MERCURY_LS_TOKEN = key
require("minuet").setup({
  provider = "openai_fim_compatible",
  provider_options = {
    openai_fim_compatible = {
      name = "mercury-ls", model = "mercury-ls", api_key = "MERCURY_LS_TOKEN", end_point = end_point, stream = true,
    },
  },
  virtualtext = { auto_trigger_ft = { "python" }, keymap = { accept = "<Tab>" } },
  throttle = 0,
  debounce = 0,
})
