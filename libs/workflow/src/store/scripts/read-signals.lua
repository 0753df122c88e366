return readSignals(signals, signalNames, name, most)
