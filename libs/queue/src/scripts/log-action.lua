local time = redis.call('TIME')
logAction(actions, noteAt(action, time[1] * 1000 + math.floor(time[2] / 1000)))
return 1
