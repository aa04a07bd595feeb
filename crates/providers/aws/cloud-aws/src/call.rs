//! A call of the Query API, as a form.

use crate::tags::Tag;

/// Objects in a page: the most that every list of EC2 takes.
const PAGE: &str = "100";

/// The service of AWS that answers a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Ec2,
    /// The Security Token Service, which reports the account of the keys.
    Sts,
}

impl Service {
    /// The name of the service in messages.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Ec2 => "EC2",
            Self::Sts => "STS",
        }
    }

    /// The name of the service in a signature.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::Sts => "sts",
        }
    }

    /// The version of the API that calls and answers follow.
    fn version(self) -> &'static str {
        match self {
            Self::Ec2 => "2016-11-15",
            Self::Sts => "2011-06-15",
        }
    }
}

/// A call: an action with parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    service: Service,
    action: &'static str,
    parameters: Vec<(String, String)>,
    filters: usize,
    tagged: usize,
}

impl Call {
    /// Without parameters.
    #[must_use]
    pub fn new(action: &'static str) -> Self {
        Self::to(Service::Ec2, action)
    }

    /// A call to a service, without parameters.
    pub(crate) fn to(service: Service, action: &'static str) -> Self {
        Self {
            service,
            action,
            parameters: Vec::new(),
            filters: 0,
            tagged: 0,
        }
    }

    /// The action: the name that an IAM policy allows, after `ec2:`.
    #[must_use]
    pub fn action(&self) -> &'static str {
        self.action
    }

    pub(crate) fn service(&self) -> Service {
        self.service
    }

    /// Whether the call changes no object.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.action.starts_with("Describe") || self.action.starts_with("Get")
    }

    /// With a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.parameters.push((name.to_owned(), value.into()));
        self
    }

    /// Lists are to come in pages. EC2 refuses to answer without pages where an account has much. Not for
    /// calls that name ids.
    #[must_use]
    pub fn paged(self) -> Self {
        self.with("MaxResults", PAGE)
    }

    /// With a list: `Name.1`, `Name.2` and so on.
    #[must_use]
    pub fn with_each<V: Into<String>>(mut self, name: &str, values: impl IntoIterator<Item = V>) -> Self {
        for (index, value) in values.into_iter().enumerate() {
            let name = format!("{name}.{}", index + 1);
            self.parameters.push((name, value.into()));
        }
        self
    }

    /// Restricts the list to objects that pass this filter. An object has to pass all filters of the call.
    #[must_use]
    pub fn filtered(self, name: &str, value: &str) -> Self {
        self.filtered_by_any(name, [value])
    }

    /// Restricts the list to objects with a value of this list.
    #[must_use]
    pub fn filtered_by_any<'v>(mut self, name: &str, values: impl IntoIterator<Item = &'v str>) -> Self {
        self.filters += 1;
        let filter = format!("Filter.{}", self.filters);
        self.with(&format!("{filter}.Name"), name)
            .with_each(&format!("{filter}.Value"), values)
    }

    /// New objects of this type get these tags by the same call, so that no object exists without the tags.
    #[must_use]
    pub fn tagged(mut self, resource_type: &str, tags: &[Tag]) -> Self {
        self.tagged += 1;
        let specification = format!("TagSpecification.{}", self.tagged);
        let mut call = self.with(&format!("{specification}.ResourceType"), resource_type);
        for (index, tag) in tags.iter().enumerate() {
            let name = format!("{specification}.Tag.{}", index + 1);
            call = call
                .with(&format!("{name}.Key"), &tag.key)
                .with(&format!("{name}.Value"), &tag.value);
        }
        call
    }

    /// The body of the request.
    #[must_use]
    pub fn form(&self) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("Action", self.action);
        form.append_pair("Version", self.service.version());
        form.extend_pairs(&self.parameters);
        form.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_a_form() {
        let call = Call::new("CreateVpc")
            .with("CidrBlock", "10.0.0.0/16")
            .tagged("vpc", &[Tag::new("Name", "a b")]);
        assert_eq!(
            call.form(),
            "Action=CreateVpc&Version=2016-11-15&CidrBlock=10.0.0.0%2F16&TagSpecification.1.ResourceType=vpc\
             &TagSpecification.1.Tag.1.Key=Name&TagSpecification.1.Tag.1.Value=a+b"
        );
    }

    #[test]
    fn what_is_made_by_one_call_has_tags_of_its_own() {
        let tags = [Tag::new("a", "b")];
        let call = Call::new("RunInstances")
            .tagged("instance", &tags)
            .tagged("volume", &tags);
        assert!(call.form().ends_with(
            "TagSpecification.2.ResourceType=volume&TagSpecification.2.Tag.1.Key=a&TagSpecification.2.Tag.1.Value=b"
        ));
    }

    #[test]
    fn filters_and_lists_are_numbered() {
        let call = Call::new("DescribeSubnets")
            .filtered("vpc-id", "vpc-1")
            .filtered_by_any("state", ["available", "pending"])
            .with_each("SubnetId", ["a", "b"]);
        assert!(call.form().ends_with(
            "Filter.1.Name=vpc-id&Filter.1.Value.1=vpc-1&Filter.2.Name=state&Filter.2.Value.1=available\
             &Filter.2.Value.2=pending&SubnetId.1=a&SubnetId.2=b"
        ));
    }
}
