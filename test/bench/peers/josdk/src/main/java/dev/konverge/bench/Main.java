package dev.konverge.bench;

import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.javaoperatorsdk.operator.Operator;
import java.io.File;

/**
 * A controller of Gauges with the Java Operator SDK.
 *
 * <p>Prints "ready" on stdout when every object has been reconciled once, and exits when its stdin closes.
 */
public final class Main {
  public static void main(String[] arguments) throws Exception {
    if (arguments.length != 2) {
      throw new IllegalArgumentException("usage: josdk-peer KUBECONFIG CONCURRENCY");
    }
    var config = Config.fromKubeconfig(new File(arguments[0]));
    // The library assumes RSA and does not read the algorithm from the key.
    config.setClientKeyAlgo("EC");
    // The client library sends five requests per host at a time by default.
    config.setMaxConcurrentRequests(256);
    config.setMaxConcurrentRequestsPerHost(256);
    KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build();
    int count = client.resources(Gauge.class).inNamespace("default").list().getItems().size();

    var operator = new Operator(overrider -> overrider
        .withKubernetesClient(client)
        .withConcurrentReconciliationThreads(Integer.parseInt(arguments[1])));
    var reconciler = new GaugeReconciler(count);
    operator.register(reconciler, overrider -> overrider.settingNamespace("default"));
    operator.start();
    reconciler.awaitAll();
    System.out.println("ready");
    System.in.readAllBytes();
    System.exit(0);
  }
}
