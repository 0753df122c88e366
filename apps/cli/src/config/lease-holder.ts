interface LeaseState {
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly renewTime?: string;
    readonly leaseDurationSeconds?: number;
  };
}

/** Returns the holder of a Lease, unless it has not renewed it for twice its duration; clocks may differ. */
export function leaseHolder({ spec = {} }: LeaseState): string | undefined {
  const { holderIdentity, renewTime, leaseDurationSeconds = 15 } = spec;
  if (!holderIdentity) return undefined;
  const ageMs = Date.now() - Date.parse(renewTime ?? "");
  return ageMs <= leaseDurationSeconds * 2_000 ? holderIdentity : undefined;
}
