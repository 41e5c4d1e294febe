//! Frames of the streams between gateways. `docs/gateway-protocol.md`

use std::net::IpAddr;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::framing::{self, HEADER_BYTES, Malformed};

use super::destination::{Destination, Host};

/// A frame of a connection between gateways. `[T1]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Bytes of the stream. `[T2]`
    Data(Bytes),
    /// Asks for a connection. `[T3]`
    Open(Open),
    /// There is a connection now. `[T7]`
    Opened,
    /// There is none. `[T7]`
    Refused(Refusal),
    /// The stream of this direction ends here. `[T8]`
    End,
    /// The connection is over. `[T9]`
    Reset,
}

/// The request for a connection. `[T3]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// Where it goes.
    pub destination: Destination,
    /// Its class, 0 to 7; 0 goes first.
    pub class: u8,
    /// The mark (DSCP) of the client's packets; 0 if they have none, or it is not told.
    pub dscp: u8,
}

/// Why there is no connection. `[T7]`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Something that has no other name.
    Other,
    /// The peer may not reach this destination.
    NotAllowed,
    /// The name does not resolve.
    UnknownHost,
    /// There is no way to the network.
    NetworkUnreachable,
    /// There is no way to the host.
    HostUnreachable,
    /// The destination refuses.
    ConnectionRefused,
    /// The destination does not answer.
    TimedOut,
    /// The gateway has as many connections as it may have, or is about to stop.
    Full,
}

/// Most content of a frame.
pub(super) const MOST_CONTENT: usize = 16 * 1024;

const DATA: u8 = 0;
const OPEN: u8 = 1;
const OPENED: u8 = 2;
const REFUSED: u8 = 3;
const END: u8 = 4;
const RESET: u8 = 5;

const IPV4: u8 = 4;
const IPV6: u8 = 6;
const NAME: u8 = 0;

const REFUSALS: [Refusal; 8] = [
    Refusal::Other,
    Refusal::NotAllowed,
    Refusal::UnknownHost,
    Refusal::NetworkUnreachable,
    Refusal::HostUnreachable,
    Refusal::ConnectionRefused,
    Refusal::TimedOut,
    Refusal::Full,
];

/// Finds frames in a stream. Data are passed on as they come, not only when their frame is whole.
#[derive(Debug, Default)]
pub struct Frames {
    buffer: BytesMut,
    /// Data that are left of the present frame.
    data_left: usize,
}

impl Frames {
    /// Takes what has arrived.
    pub fn push(&mut self, arrived: &[u8]) {
        self.buffer.extend_from_slice(arrived);
    }

    /// The next frame, or a part of one with data; `None` if more has to arrive.
    ///
    /// # Errors
    /// If what stands there can be no frame, whatever follows.
    pub fn take(&mut self) -> Result<Option<Frame>, Malformed> {
        loop {
            if self.data_left > 0 {
                let bytes = self.data_left.min(self.buffer.len());
                self.data_left -= bytes;
                return Ok((bytes > 0).then(|| Frame::Data(self.buffer.split_to(bytes).freeze())));
            }
            let Some((kind, bytes)) = framing::header(&self.buffer) else {
                self.free();
                return Ok(None);
            };
            if kind > RESET || bytes > MOST_CONTENT {
                return Err(Malformed);
            }
            if kind == DATA {
                self.buffer.advance(HEADER_BYTES);
                self.data_left = bytes;
                continue;
            }
            let Some(content) = framing::take_content(&mut self.buffer, bytes) else { return Ok(None) };
            return Frame::of(kind, content).map(Some);
        }
    }

    /// Whether it stands between two frames.
    pub fn is_at_boundary(&self) -> bool {
        self.data_left == 0 && self.buffer.is_empty()
    }

    /// A connection that is idle keeps no buffer.
    fn free(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
    }
}

impl Frame {
    fn of(kind: u8, mut content: Bytes) -> Result<Self, Malformed> {
        let frame = match kind {
            OPEN => Frame::Open(Open::take(&mut content).ok_or(Malformed)?),
            OPENED => Frame::Opened,
            REFUSED => Frame::Refused(Refusal::of(content.try_get_u8().map_err(|_| Malformed)?)),
            END => Frame::End,
            _ => Frame::Reset,
        };
        // Bytes behind the fields belong to later versions.
        Ok(frame)
    }

    /// Puts it behind what there is. Data are no longer than [`MOST_CONTENT`].
    pub fn put(&self, into: &mut BytesMut) {
        framing::put(into, MOST_CONTENT, |into| match self {
            Frame::Data(data) => {
                into.put_slice(data);
                DATA
            }
            Frame::Open(open) => {
                open.put(into);
                OPEN
            }
            Frame::Opened => OPENED,
            Frame::Refused(why) => {
                into.put_u8(why.code());
                REFUSED
            }
            Frame::End => END,
            Frame::Reset => RESET,
        });
    }

    /// It alone.
    pub fn to_bytes(&self) -> BytesMut {
        let mut bytes = BytesMut::new();
        self.put(&mut bytes);
        bytes
    }
}

/// Makes a frame of data of what was read behind the place of its header.
pub(super) fn fill_data_header(frame: &mut [u8]) {
    let bytes = (frame.len() - HEADER_BYTES) as u16;
    frame[0] = DATA;
    frame[1..HEADER_BYTES].copy_from_slice(&bytes.to_be_bytes());
}

impl Open {
    fn take(content: &mut Bytes) -> Option<Self> {
        let class = content.try_get_u8().ok()?;
        let destination = take_destination(content)?;
        // Gateways before it do not tell it.
        let dscp = content.try_get_u8().map_or(0, |dscp| dscp & 0x3f);
        Some(Open { destination, class: class.min(7), dscp })
    }

    fn put(&self, into: &mut BytesMut) {
        into.put_u8(self.class);
        put_destination(&self.destination, into);
        if self.dscp != 0 {
            into.put_u8(self.dscp);
        }
    }
}

/// Port, kind of address, address. `[T4]`
pub(super) fn take_destination(content: &mut Bytes) -> Option<Destination> {
    let port = content.try_get_u16().ok().filter(|&port| port != 0)?;
    let host = match content.try_get_u8().ok()? {
        IPV4 => Host::Address(IpAddr::from(content.try_get_u32().ok()?.to_be_bytes())),
        IPV6 => Host::Address(IpAddr::from(content.try_get_u128().ok()?.to_be_bytes()).to_canonical()),
        NAME => {
            let bytes = usize::from(content.try_get_u8().ok()?);
            let name = (bytes <= content.len()).then(|| content.split_to(bytes))?;
            Host::parse(std::str::from_utf8(&name).ok()?).ok()?
        }
        _ => return None,
    };
    Some(Destination { host, port })
}

pub(super) fn put_destination(destination: &Destination, into: &mut BytesMut) {
    into.put_u16(destination.port);
    match &destination.host {
        Host::Address(IpAddr::V4(address)) => {
            into.put_u8(IPV4);
            into.put_slice(&address.octets());
        }
        Host::Address(IpAddr::V6(address)) => {
            into.put_u8(IPV6);
            into.put_slice(&address.octets());
        }
        Host::Name(name) => {
            into.put_u8(NAME);
            into.put_u8(name.len() as u8);
            into.put_slice(name.as_bytes());
        }
    }
}

impl Refusal {
    fn of(code: u8) -> Self {
        framing::meaning(&REFUSALS, code)
    }

    fn code(self) -> u8 {
        framing::code(&REFUSALS, self)
    }

    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Refusal::Other => "the far gateway could not connect",
            Refusal::NotAllowed => "the far gateway does not allow this destination",
            Refusal::UnknownHost => "the far gateway does not know this host",
            Refusal::NetworkUnreachable => "the network of the destination cannot be reached",
            Refusal::HostUnreachable => "the destination cannot be reached",
            Refusal::ConnectionRefused => "the destination refuses connections",
            Refusal::TimedOut => "the destination does not answer",
            Refusal::Full => "the far gateway has no room for more connections",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames() -> impl Strategy<Value = Frame> {
        let host = prop_oneof![
            any::<[u8; 4]>().prop_map(|it| Host::Address(it.into())),
            any::<[u8; 16]>().prop_map(|it| Host::Address(IpAddr::from(it).to_canonical())),
            "[a-z0-9-]{1,20}(\\.[a-z0-9]{1,10}){0,3}".prop_map(|it| Host::parse(&it).unwrap()),
        ];
        let open = (host, 1..=u16::MAX, 0..8_u8, 0..64_u8).prop_map(|(host, port, class, dscp)| {
            Frame::Open(Open { destination: Destination { host, port }, class, dscp })
        });
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..2000).prop_map(|data| Frame::Data(data.into())),
            open,
            Just(Frame::Opened),
            prop::sample::select(REFUSALS.to_vec()).prop_map(Frame::Refused),
            Just(Frame::End),
            Just(Frame::Reset),
        ]
    }

    /// Neighbouring data as one, as they come in parts.
    fn joined(frames: impl IntoIterator<Item = Frame>) -> Vec<Frame> {
        let mut joined: Vec<Frame> = Vec::new();
        for frame in frames {
            match (joined.last_mut(), &frame) {
                (_, Frame::Data(more)) if more.is_empty() => {}
                (Some(Frame::Data(data)), Frame::Data(more)) => *data = [&data[..], more].concat().into(),
                _ => joined.push(frame),
            }
        }
        joined
    }

    proptest! {
        #[test]
        fn frames_come_back_however_they_are_cut(sent in prop::collection::vec(frames(), 0..8), piece in 1..500_usize) {
            let mut bytes = BytesMut::new();
            sent.iter().for_each(|frame| frame.put(&mut bytes));
            let (mut frames, mut came) = (Frames::default(), Vec::new());
            for piece in bytes.chunks(piece) {
                frames.push(piece);
                while let Some(frame) = frames.take().unwrap() {
                    came.push(frame);
                }
            }
            prop_assert_eq!(joined(came), joined(sent));
            prop_assert!(frames.is_at_boundary());
        }

        #[test]
        fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut frames = Frames::default();
            frames.push(&noise);
            while let Ok(Some(frame)) = frames.take() {
                let mut again = Frames::default();
                again.push(&frame.to_bytes());
                prop_assert_eq!(again.take().unwrap(), Some(frame));
            }
        }
    }

    #[test]
    fn frames_that_cannot_be_are_malformed() {
        for wrong in [
            &[6, 0, 0][..],
            &[0, 0x40, 1],
            &[1, 0, 0],
            &[1, 0, 5, 0, 0, 0, 4, 1],
            &[3, 0, 0],
            &[1, 0, 6, 0, 0, 80, 0, 9, b'a'],
        ] {
            let mut frames = Frames::default();
            frames.push(wrong);
            assert_eq!(frames.take(), Err(Malformed), "{wrong:?}");
        }
    }
}
