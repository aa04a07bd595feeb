//! Masquerading, by a separate table of nf_tables; no further program touches the table:
//!
//! ```text
//! table ip network-local {
//!   chain postrouting {
//!     type nat hook postrouting priority 100;
//!     ip saddr <pods> ip daddr != <pods> masquerade
//!   }
//! }
//! ```

use std::{io, net::Ipv4Addr};

use ipnet::Ipv4Net;
use netlink_packet_netfilter::{
    NetfilterHeader, NetfilterMessage, NetfilterMessageInner, NetfilterProtoFamily,
    nftables::{
        Bitwise, ChainAttribute, ChainMessage, Cmp, DataAttribute, Expressions, Hook, InetHookNumber,
        NfTablesMessage, Operator, Payload, Register, RuleAttribute, RuleMessage, TableAttribute,
        TableMessage,
    },
    none::ControlMessage,
};
use rtnetlink::{
    packet_core::{NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload},
    sys::{AsyncSocket, AsyncSocketExt, SocketAddr, TokioSocket, protocols::NETLINK_NETFILTER},
};

const TABLE: &str = "network-local";
const CHAIN: &str = "postrouting";
/// `srcnat`: where source addresses are changed.
const PRIORITY: u32 = 100;
/// Number of nf_tables among the parts of netfilter.
const NF_TABLES: u16 = 10;
/// Payload expressions count from the beginning of the network header.
const NETWORK_HEADER: u32 = 1;
/// Offsets of the addresses in the network header.
const SOURCE: u32 = 12;
const DESTINATION: u32 = 16;

/// A netlink socket to netfilter.
pub(super) struct Filter(TokioSocket);

impl Filter {
    pub(super) fn open() -> io::Result<Self> {
        let mut socket = TokioSocket::new(NETLINK_NETFILTER)?;
        socket.socket_mut().bind_auto()?;
        socket.socket_ref().connect(&SocketAddr::new(0, 0))?;
        Ok(Self(socket))
    }

    /// Writes the table in a single transaction: the rule is never missing.
    pub(super) async fn masquerade(&mut self, pods: Ipv4Net) -> io::Result<()> {
        let batch = batch(pods);
        let awaited = batch
            .iter()
            .filter(|message| message.header.flags & NLM_F_ACK != 0)
            .count();
        let mut bytes = Vec::new();
        for message in &batch {
            let start = bytes.len();
            bytes.resize(start + message.buffer_len(), 0);
            message.serialize(&mut bytes[start..]);
        }
        self.0.send(&bytes).await?;
        let mut answered = 0;
        while answered < awaited {
            let (answer, _) = self.0.recv_from_full().await?;
            answered += judge(&answer)?;
        }
        Ok(())
    }
}

/// The number of requests that an answer confirms.
fn judge(mut answer: &[u8]) -> io::Result<usize> {
    let mut confirmed = 0;
    while !answer.is_empty() {
        let message = NetlinkMessage::<NetfilterMessage>::deserialize(answer).map_err(io::Error::other)?;
        if let NetlinkPayload::Error(answer) = &message.payload {
            match answer.code {
                None => confirmed += 1,
                Some(_) => return Err(answer.to_io()),
            }
        }
        // Messages begin at multiples of four.
        let length = (message.header.length as usize).max(16).next_multiple_of(4);
        answer = answer.get(length..).unwrap_or_default();
    }
    Ok(confirmed)
}

fn batch(pods: Ipv4Net) -> Vec<NetlinkMessage<NetfilterMessage>> {
    let table = || TableMessage {
        attributes: vec![TableAttribute::Name(TABLE.into())],
    };
    let chain = ChainMessage {
        attributes: vec![
            ChainAttribute::Table(TABLE.into()),
            ChainAttribute::Name(CHAIN.into()),
            ChainAttribute::Hook(vec![
                Hook::Number(InetHookNumber::PostRouting.into()),
                Hook::Priority(PRIORITY),
            ]),
            ChainAttribute::Type("nat".into()),
        ],
    };
    let of_chain = || {
        vec![
            RuleAttribute::Table(TABLE.into()),
            RuleAttribute::Chain(CHAIN.into()),
        ]
    };
    let rules_of_before = RuleMessage {
        attributes: of_chain(),
    };
    let mut rule = RuleMessage {
        attributes: of_chain(),
    };
    let expressions = expressions(pods).into_iter().map(Into::into).collect();
    rule.attributes.push(RuleAttribute::Expressions(expressions));
    let parts = [
        (ControlMessage::BatchBegin.into(), 0),
        (
            NfTablesMessage::NewTable(table()).into(),
            NLM_F_ACK | NLM_F_CREATE,
        ),
        (NfTablesMessage::NewChain(chain).into(), NLM_F_ACK | NLM_F_CREATE),
        (NfTablesMessage::DeleteRule(rules_of_before).into(), NLM_F_ACK),
        (
            NfTablesMessage::NewRule(rule).into(),
            NLM_F_ACK | NLM_F_CREATE | NLM_F_APPEND,
        ),
        (ControlMessage::BatchEnd.into(), 0),
    ];
    let numbered = (1..).zip(parts);
    numbered
        .map(|(number, (inner, flags))| message(number, inner, flags))
        .collect()
}

fn message(number: u32, inner: NetfilterMessageInner, flags: u16) -> NetlinkMessage<NetfilterMessage> {
    let header = match inner {
        NetfilterMessageInner::None(_) => NetfilterHeader::new(NetfilterProtoFamily::Unspec, 0, NF_TABLES),
        _ => NetfilterHeader::new(NetfilterProtoFamily::IPv4, 0, 0),
    };
    let mut message = NetlinkMessage::from(NetfilterMessage::new(header, inner));
    message.header.flags = NLM_F_REQUEST | flags;
    message.header.sequence_number = number;
    message.finalize();
    message
}

/// Masquerades packets from pods to targets outside of the pods' network.
fn expressions(pods: Ipv4Net) -> Vec<Expressions> {
    let mut all = compare(SOURCE, pods, Operator::Equal);
    all.extend(compare(DESTINATION, pods, Operator::NotEqual));
    all.push(Expressions::Other {
        expression_type: "masq".into(),
        attributes: Vec::new(),
    });
    all
}

/// Compares the network part of the address at this offset with the network.
fn compare(offset: u32, network: Ipv4Net, operator: Operator) -> Vec<Expressions> {
    let value = |address: Ipv4Addr| DataAttribute::Value(address.octets().to_vec());
    vec![
        Expressions::Payload(vec![
            Payload::DestinationRegister(Register::Reg1),
            Payload::Base(NETWORK_HEADER),
            Payload::Offset(offset),
            Payload::Len(4),
        ]),
        Expressions::Bitwise(vec![
            Bitwise::SourceRegister(Register::Reg1),
            Bitwise::DestinationRegister(Register::Reg1),
            Bitwise::Length(4),
            Bitwise::Mask(value(network.netmask())),
            Bitwise::Xor(value(Ipv4Addr::UNSPECIFIED)),
        ]),
        Expressions::Cmp(vec![
            Cmp::SourceRegister(Register::Reg1),
            Cmp::Op(operator),
            Cmp::Data(value(network.network())),
        ]),
    ]
}
