/** Problems of the last minutes that are still listed after their cause has ended. */
export const RECENT: readonly string[] = ["lost", "failing", "backlog"];
