import { randomBytes } from "node:crypto";
import { promisify } from "node:util";
import forge from "node-forge";

/** A certificate and its private key, both PEM. */
export interface KeyedCertificate {
  certificate: string;
  key: string;
}

export type AltName = { ip: string } | { dns: string };

export interface CertificateSubject {
  commonName: string;
  /** What clients may call the server: they ignore the common name. */
  altNames: AltName[];
}

// Numbers of RFC 5280's GeneralName choice, which is how node-forge wants them.
const dnsName = 2;
const ipAddress = 7;

/** A new certificate authority of this machine, valid for ten years: it only ever signs loopback servers. */
export async function makeAuthority(commonName = "Egress Proxies local authority"): Promise<KeyedCertificate> {
  const { cert, keys } = await blankCertificate(commonName, 3650);
  cert.setIssuer(cert.subject.attributes);
  cert.setExtensions([
    { name: "basicConstraints", cA: true, critical: true },
    { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    { name: "subjectKeyIdentifier" },
  ]);
  cert.sign(keys.privateKey, forge.md.sha256.create());
  return { certificate: forge.pki.certificateToPem(cert), key: forge.pki.privateKeyToPem(keys.privateKey) };
}

/** A server certificate signed by `authority`, valid for a year. Throws when the authority is not PEM. */
export async function issueCertificate(
  authority: KeyedCertificate,
  subject: CertificateSubject,
): Promise<KeyedCertificate> {
  const issuer = forge.pki.certificateFromPem(authority.certificate);
  const { cert, keys } = await blankCertificate(subject.commonName, 365);
  cert.setIssuer(issuer.subject.attributes);
  cert.setExtensions([
    { name: "basicConstraints", cA: false, critical: true },
    { name: "keyUsage", digitalSignature: true, keyEncipherment: true, critical: true },
    { name: "extKeyUsage", serverAuth: true },
    { name: "subjectAltName", altNames: subject.altNames.map(toGeneralName) },
    // Strict verifiers (Python 3.13 and later) refuse a certificate without it.
    { name: "authorityKeyIdentifier", keyIdentifier: issuer.generateSubjectKeyIdentifier().getBytes() },
  ]);
  cert.sign(forge.pki.privateKeyFromPem(authority.key), forge.md.sha256.create());
  return { certificate: forge.pki.certificateToPem(cert), key: forge.pki.privateKeyToPem(keys.privateKey) };
}

async function blankCertificate(
  commonName: string,
  days: number,
): Promise<{ cert: forge.pki.Certificate; keys: forge.pki.rsa.KeyPair }> {
  const keys = await promisify(forge.pki.rsa.generateKeyPair)({ bits: 2048 });
  const cert = forge.pki.createCertificate();
  cert.publicKey = keys.publicKey;
  // A serial number is a positive integer: the leading 01 keeps the sign bit clear.
  cert.serialNumber = `01${randomBytes(15).toString("hex")}`;
  // A day back, for clocks that disagree.
  cert.validity.notBefore = new Date(Date.now() - 86_400_000);
  cert.validity.notAfter = new Date(Date.now() + days * 86_400_000);
  cert.setSubject([{ name: "commonName", value: commonName }]);
  return { cert, keys };
}

function toGeneralName(name: AltName): { type: number; ip: string } | { type: number; value: string } {
  return "ip" in name ? { type: ipAddress, ip: name.ip } : { type: dnsName, value: name.dns };
}
