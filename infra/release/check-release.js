import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Returns the problems that prevent a release of the current commit, each with a fix.
 * @param {{ root: string, version: string }} options
 * @returns {string[]} empty if it can be released
 */
export function checkRelease({ root, version }) {
  const read = (/** @type {string} */ file) => readFileSync(join(root, file), "utf8");
  const problems = [];
  if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
    problems.push(`version of package.json must be semver, for example 1.2.3 (got ${version})`);
  const manifests = globSync("{apps,libs,infra}/*/package.json", { cwd: root });
  const others = manifests.filter((file) => JSON.parse(read(file)).version !== version).toSorted();
  if (others.length > 0)
    problems.push(
      `${others.join(", ")} must have version ${version}; run \`npm version ${version} --workspaces --no-git-tag-version\``,
    );
  const chart = read("infra/helm/konverge/Chart.yaml");
  for (const field of ["version", "appVersion"])
    if (!chart.split("\n").includes(`${field}: ${version}`))
      problems.push(`${field} of infra/helm/konverge/Chart.yaml must be ${version}; set it`);
  const [heading = "none"] = /^## .*$/m.exec(read("CHANGELOG.md")) ?? [];
  const [, released, date = ""] = /^## (\S+) \((.*)\)$/.exec(heading) ?? [];
  if (released !== version || !/^\d{4}-\d\d-\d\d$/.test(date))
    problems.push(
      `the first section of CHANGELOG.md must be "## ${version} (YYYY-MM-DD)" (got "${heading}"); set the date`,
    );
  const changed = git(root, "status", "--porcelain").split("\n").filter(Boolean);
  if (changed.length > 0)
    problems.push(
      `the work tree has ${changed.length} uncommitted changes (${changed[0]?.slice(3)}); commit or remove them`,
    );
  if (git(root, "tag", "--list", `v${version}`) !== "")
    problems.push(`the tag v${version} exists; choose the next version`);
  return problems;
}

/** @param {string} root @returns {Date} the time of the commit, which is the same for each build */
export function commitTime(root) {
  return new Date(Number(git(root, "log", "-1", "--format=%ct")) * 1000);
}

/** @param {string} root @param {...string} args @returns {string} */
function git(root, ...args) {
  const { status, stdout, stderr } = spawnSync("git", args, { cwd: root, encoding: "utf8" });
  if (status === 0) return stdout.trimEnd();
  throw new Error(
    `git ${args[0]} failed: ${stderr.trim()}; release from a clone of the repository`,
  );
}
