/**
 * Returns a kubeconfig in YAML for a server without authentication. Its server has no TLS, which client-node accepts only with
 * `insecure-skip-tls-verify`.
 */
export function formatKubeconfig(url: string): string {
  return `apiVersion: v1
kind: Config
clusters:
  - name: konverge-embedded
    cluster:
      server: ${url}
      insecure-skip-tls-verify: true
users:
  - name: anybody
    user: {}
contexts:
  - name: konverge-embedded
    context:
      cluster: konverge-embedded
      user: anybody
      namespace: default
current-context: konverge-embedded
`;
}
