import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findPythonPackages } from "../../infra/host/python-packages.js";

let folder = "";
let requirements = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "konverge-python-"));
  requirements = join(folder, "requirements.txt");
  writeFileSync(requirements, "kopf==1.45.2\n");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const name = "python-packages-test";

test("names the variable that installs missing Python packages", async () => {
  const env = { XDG_CACHE_HOME: folder };
  expect(await findPythonPackages({ name, requirements }, { env })).toEqual({
    missing: `no ${name}; set CI=true to install it with pip`,
  });
});

test("reports a machine without Python", async () => {
  const env = { XDG_CACHE_HOME: folder, PATH: folder };
  expect(await findPythonPackages({ name, requirements }, { env, build: true })).toEqual({
    missing: `no ${name}, and no python3 to install it`,
  });
});
