local nowText = string.format('%d', now)
