//! Keys of a Secret that do not hold keys of an account, and name a source of such keys instead. The suite
//! uses the keys in the Secret alone: a role, a file or an endpoint would be resolved with the identity of
//! the seed.

/// Names of such sources in the formats of AWS's own tools and of Gardener, without case, separators and the
/// prefix `aws`.
const SOURCES: &[&str] = &[
    "config",
    "configfile",
    "containerauthorizationtoken",
    "containerauthorizationtokenfile",
    "containercredentialsfulluri",
    "containercredentialsrelativeuri",
    "credentialprocess",
    "credentialsfile",
    "credentialsource",
    "ec2metadataserviceendpoint",
    "externalid",
    "metadataendpoint",
    "profile",
    "rolearn",
    "rolesessionname",
    "sharedcredentialsfile",
    "sourceprofile",
    "stsendpoint",
    "token",
    "tokenfile",
    "webidentitytoken",
    "webidentitytokenfile",
    "workloadidentitytokenfile",
];

/// The first key that names a source of credentials outside the Secret, such as `roleARN` or
/// `credential_process`.
pub fn external_credentials<'k>(keys: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let is_source = |key: &&str| {
        let plain: String = key
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_lowercase())
            .collect();
        SOURCES.contains(&plain.strip_prefix("aws").unwrap_or(&plain))
    };
    keys.into_iter().find(is_source)
}

#[cfg(test)]
mod tests {
    use super::external_credentials;

    #[test]
    fn a_source_of_credentials_is_known_in_every_spelling() {
        for key in [
            "roleARN",
            "role_arn",
            "AWS_ROLE_ARN",
            "credential_process",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "token",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "awsEC2MetadataServiceEndpoint",
        ] {
            assert_eq!(external_credentials(["accessKeyID", key]), Some(key));
        }
        let of_backups = [
            "accessKeyID",
            "secretAccessKey",
            "sessionToken",
            "region",
            "endpoint",
            "bucketName",
            "ca.crt",
        ];
        assert_eq!(external_credentials(of_backups), None);
    }
}
