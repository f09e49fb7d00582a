import { kubernetesBackend } from "./kubernetes-backend.ts";
import { providerSuite } from "./provider-suite.ts";

providerSuite("the kubernetes provider", kubernetesBackend);
