
local found = {}
for name, id in pairs(vim.api.nvim_get_namespaces()) do
  if name == ... then
    for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, id, 0, -1, { details = true })) do
      local lines = { mark[4].virt_text }
      vim.list_extend(lines, mark[4].virt_lines or {})
      for _, chunks in ipairs(lines) do
        found[#found + 1] = table.concat(vim.tbl_map(function(chunk) return chunk[1] end, chunks))
      end
    end
  end
end
return table.concat(found, "\n")
