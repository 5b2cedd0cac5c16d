-- The version of this plugin, and of the server that it was tested with.
return "0.1.0"
