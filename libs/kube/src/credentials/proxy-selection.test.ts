import { expect, test } from "vitest";
import { selectProxy } from "./proxy-selection.ts";

const HTTPS = { HTTPS_PROXY: "http://proxy:3128" };
test.each<[string, string, NodeJS.ProcessEnv, string | undefined]>([
  ["no variable", "https://api.example.com", {}, undefined],
  ["https", "https://api.example.com", HTTPS, "http://proxy:3128"],
  ["another variable for http", "http://api.example.com", HTTPS, undefined],
  [
    "lower case takes precedence",
    "https://api.example.com",
    { ...HTTPS, https_proxy: "http://lower:1" },
    "http://lower:1",
  ],
  [
    "a proxy without a scheme",
    "http://api.example.com",
    { http_proxy: "proxy:3128" },
    "http://proxy:3128",
  ],
  ["all", "https://api.example.com", { ALL_PROXY: "socks5://p:1" }, "socks5://p:1"],
  ["loopback", "https://127.0.0.1:6443", HTTPS, undefined],
  ["loopback by name", "https://localhost:6443", HTTPS, undefined],
  [
    "excluded domain",
    "https://api.example.com",
    { ...HTTPS, NO_PROXY: "x, .example.com" },
    undefined,
  ],
  [
    "a domain, not a suffix of it",
    "https://badexample.com",
    { ...HTTPS, NO_PROXY: "example.com" },
    "http://proxy:3128",
  ],
  ["excluded port", "https://a.b:6443", { ...HTTPS, NO_PROXY: "a.b:6443" }, undefined],
  ["another port", "https://a.b", { ...HTTPS, NO_PROXY: "a.b:6443" }, "http://proxy:3128"],
  ["excluded network", "https://10.96.0.1", { ...HTTPS, NO_PROXY: "10.0.0.0/8" }, undefined],
  [
    "another network",
    "https://11.96.0.1",
    { ...HTTPS, NO_PROXY: "10.0.0.0/8" },
    "http://proxy:3128",
  ],
  ["everything", "https://a.b", { ...HTTPS, NO_PROXY: "*" }, undefined],
])("%s", (_title, server, env, expected) => {
  expect(selectProxy(new URL(server), env)).toBe(expected);
});
