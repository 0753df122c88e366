import { spawnSync } from "node:child_process";

/**
 * Returns a tar archive of a folder, with the files in the order of their names. The same files give the same bytes: the
 * archive contains no times, owners and modes of this machine.
 * @param {string} folder @param {Date} created @param {readonly string[]} [excluded] patterns of GNU tar
 * @returns {Buffer}
 */
export function archiveFolder(folder, created, excluded = []) {
  const args = [
    "--create",
    "--sort=name",
    "--format=posix",
    "--numeric-owner",
    "--owner=0",
    "--group=0",
    // Without the time of the archive and the process id, which GNU tar adds.
    "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime",
    // Files belong to root, and only root may write; no program gains rights.
    "--mode=a-st,u=rwX,go=rX",
    `--mtime=@${created.getTime() / 1000}`,
    "--no-wildcards-match-slash",
    ...excluded.map((pattern) => `--exclude=${pattern}`),
    "--directory",
    folder,
    ".",
  ];
  const env = { ...process.env, LC_ALL: "C", TZ: "UTC" };
  const { status, stdout, stderr, error } = spawnSync("tar", args, { env, maxBuffer: 2e9 });
  if (status === 0) return stdout;
  throw new Error(`tar failed: ${error?.message ?? stderr.toString().trim()}; install GNU tar`);
}
