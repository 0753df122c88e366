import { expect, test } from "vitest";
import { parseServerState } from "./server-state.ts";

test("returns the lag of the slowest replica", () => {
  const info = [
    "# Memory",
    "used_memory:1048576",
    "maxmemory:4194304",
    "# Replication",
    "role:master",
    "connected_slaves:2",
    "slave0:ip=10.0.0.2,port=6379,state=online,offset=900,lag=0",
    "slave1:ip=10.0.0.3,port=6379,state=online,offset=400,lag=3",
    "master_repl_offset:1000",
  ].join("\r\n");
  expect(parseServerState(info)).toEqual({
    usedBytes: 1_048_576,
    maxBytes: 4_194_304,
    replicas: 2,
    replicaLagBytes: 600,
  });
});

test("a field that the server does not report is unknown", () => {
  const unknown = { usedBytes: undefined, maxBytes: undefined };
  expect(parseServerState("role:master")).toEqual({
    ...unknown,
    replicas: undefined,
    replicaLagBytes: undefined,
  });
  expect(parseServerState("connected_slaves:1\r\nmaster_repl_offset:5")).toEqual({
    ...unknown,
    replicas: 1,
    replicaLagBytes: undefined,
  });
});

test("a server without replicas or a limit has none", () => {
  const info = "used_memory:7\r\nmaxmemory:0\r\nconnected_slaves:0\r\nmaster_repl_offset:5";
  expect(parseServerState(info)).toEqual({
    usedBytes: 7,
    maxBytes: 0,
    replicas: 0,
    replicaLagBytes: 0,
  });
});
