#!/usr/bin/env node
// The kubectl plugin `kubectl konverge`: the same program. It recognizes its name by the path of this file.
import "./konverge.js";
