
vim.cmd("filetype indent off")
vim.o.swapfile, vim.o.autoindent, vim.o.ruler, vim.o.showcmd, vim.o.laststatus = false, false, false, false, 0
vim.o.termguicolors, vim.o.background, vim.o.fillchars = true, "dark", "eob: "
pcall(vim.cmd.colorscheme, "catppuccin") -- Neovim 0.11 has none
vim.cmd.highlight("MercuryGhost guifg=#8087a2 gui=italic")
vim.cmd.highlight("MercuryAdd guibg=#2f5a3c")
vim.cmd.highlight("MercuryDelete guibg=#6b2f45")
vim.opt.shortmess:append("IFW")
vim.opt.runtimepath:append("{plugin}")
vim.lsp.config("mercury", {{ cmd = {{ {command} }} }})
require("mercury").setup({{ keys = true }})
