
vim.cmd("filetype indent off")
vim.o.termguicolors, vim.o.background = true, "dark"
vim.cmd.colorscheme("catppuccin")
vim.o.swapfile, vim.o.autoindent, vim.o.ruler, vim.o.showcmd = false, false, false, false
vim.o.number, vim.o.numberwidth, vim.o.signcolumn, vim.o.fillchars = true, 4, "no", "eob: "
vim.o.laststatus, vim.o.statusline = 2, " %f%( %m%)%=%{{v:lua.require'mercury'.status()}} "
vim.cmd.highlight("StatusLineNC guifg=#9399b2")
vim.cmd.highlight("MercuryGhost guifg=#8087a2 gui=italic")
vim.cmd.highlight("MercuryAdd guibg=#2f5a3c")
vim.cmd.highlight("MercuryDelete guibg=#6b2f45 gui=strikethrough")
vim.opt.shortmess:append("IFW")
vim.opt.runtimepath:append("{plugin}")
vim.lsp.config("mercury", {{ cmd = {{ {command} }} }})
require("mercury").setup({{ keys = true }})
vim.api.nvim_create_autocmd("UIEnter", {{
  nested = true,
  once = true,
  callback = function()
    vim.cmd("belowright split invoice.py | wincmd k | resize {rows}")
  end,
}})
