logAction(actions, noteAt(action, now))
return redis.call('HSET', pauses, field, noteAt(note, now))
