
local space = vim.api.nvim_create_namespace("mercury.nextedit")
local found = {}
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })) do
  local row, col, more = mark[2], mark[3], mark[4]
  if more.hl_group then
    table.insert(found, { "-", row, vim.api.nvim_buf_get_text(0, row, col, more.end_row, more.end_col, {})[1] })
  end
  for _, chunk in ipairs(more.virt_text or {}) do
    local sign = ({ MercuryHint = "?", MercuryGhost = "~" })[chunk[2]] or "+"
    table.insert(found, { sign, row, chunk[1] })
  end
  for _, line in ipairs(more.virt_lines or {}) do
    table.insert(found, { "+", row, line[1][1] })
  end
end
return found
