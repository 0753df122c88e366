logAction(actions, noteAt(action, now))
return 1
