//! NumPy's array format, as far as trace files need it: numbers and text, little-endian, at most one dimension.
//!
//! <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>
//!
//! An array is read as a stream. The size in its header is compared with the number of bytes present, and with the limit, before
//! memory is allocated.

use std::io::Read;

/// Counted size of each number, because flags are converted to numbers later.
pub(super) const BYTES_EACH: u64 = 8;

/// The longest accepted header in bytes; NumPy's own headers have about a hundred.
const LONGEST_HEADER: usize = 1 << 14;
/// Bytes that are converted at a time; a multiple of every element size.
const CHUNK: usize = 1 << 16;

/// An array whose header was read, and what follows it.
pub(super) struct Array<R> {
    element: Element,
    count: usize,
    elements: R,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Element {
    Float(usize),
    Signed(usize),
    /// Unsigned numbers, or truth values.
    Unsigned(usize),
    /// Characters of one byte.
    Bytes(usize),
    /// Characters of four bytes.
    Characters(usize),
}

impl Element {
    /// From NumPy's descriptor, such as `<f8`.
    fn parse(descriptor: &str) -> Option<Self> {
        let mut letters = descriptor.chars();
        let (order, kind) = (letters.next()?, letters.next()?);
        let size: usize = letters.as_str().parse().ok()?;
        let element = match (kind, size) {
            ('f', 4 | 8) => Element::Float(size),
            ('i', 1 | 2 | 4 | 8) => Element::Signed(size),
            ('u', 1 | 2 | 4 | 8) | ('b', 1) => Element::Unsigned(size),
            ('S', 1..) => Element::Bytes(size),
            ('U', 1..) => Element::Characters(size.checked_mul(4)?),
            _ => return None,
        };
        let is_little = order == '<' || (order == '|' && matches!(kind, 'i' | 'u' | 'b' | 'S'));
        is_little.then_some(element)
    }

    fn size(self) -> usize {
        let (Element::Float(size)
        | Element::Signed(size)
        | Element::Unsigned(size)
        | Element::Bytes(size)
        | Element::Characters(size)) = self;
        size
    }
}

impl<R: Read> Array<R> {
    /// Reads the header of an array that has `length` bytes, and checks that both agree.
    pub(super) fn open(mut input: R, length: u64) -> Result<Self, String> {
        let broken = || "is not a NumPy array".to_string();
        let mut start = [0; 8];
        input.read_exact(&mut start).map_err(|_| broken())?;
        let [0x93, b'N', b'U', b'M', b'P', b'Y', major, minor] = start else { return Err(broken()) };
        let digits = match (major, minor) {
            (1, 0) => 2,
            (2, 0) => 4,
            _ => return Err(format!("has NumPy's format {major}.{minor}; allowed: 1.0, 2.0")),
        };
        let mut header_length = [0; 4];
        input.read_exact(&mut header_length[..digits]).map_err(|_| broken())?;
        let header_length = u32::from_le_bytes(header_length) as usize;
        if header_length > LONGEST_HEADER {
            return Err(format!("has a header of {header_length} bytes; allowed: up to {LONGEST_HEADER}"));
        }
        let mut header = vec![0; header_length];
        input.read_exact(&mut header).map_err(|_| "ends within its header")?;
        let header = std::str::from_utf8(&header).map_err(|_| broken())?;

        let descriptor = field(header, "descr").and_then(unquote).ok_or("has a header without a plain descr")?;
        let element = Element::parse(descriptor).ok_or_else(|| {
            let shown: String = descriptor.chars().take(20).collect();
            format!("holds {shown}; allowed: little-endian numbers of 1 to 8 bytes, and text")
        })?;
        let shape = field(header, "shape").and_then(|rest| rest.strip_prefix('(')?.split_once(')'));
        let count = shape.and_then(|(shape, _)| count(shape)).ok_or("has more than one dimension, or no shape")?;
        let promised = length.saturating_sub((start.len() + digits + header_length) as u64);
        if count.checked_mul(element.size()).and_then(|bytes| u64::try_from(bytes).ok()) != Some(promised) {
            return Err(format!("has {promised} bytes of data but {count} elements of {} bytes", element.size()));
        }
        Ok(Array { element, count, elements: input })
    }

    /// As floating-point numbers, of at most `most_bytes` bytes.
    pub(super) fn floats(self, most_bytes: u64) -> Result<Vec<f64>, String> {
        match self.element {
            Element::Float(4) => {
                self.convert(most_bytes, |bytes| Ok(f64::from(f32::from_bits(widen(bytes, 0) as u32))))
            }
            Element::Float(_) => self.convert(most_bytes, |bytes| Ok(f64::from_bits(widen(bytes, 0)))),
            Element::Signed(_) => self.convert(most_bytes, |bytes| Ok(signed(bytes) as f64)),
            Element::Unsigned(_) => self.convert(most_bytes, |bytes| Ok(widen(bytes, 0) as f64)),
            Element::Bytes(_) | Element::Characters(_) => Err("holds text, not numbers".into()),
        }
    }

    /// As whole numbers from 0 on, of at most `most_bytes` bytes.
    pub(super) fn integers(self, most_bytes: u64) -> Result<Vec<u64>, String> {
        let whole = self.whole()?;
        self.convert(most_bytes, whole)
    }

    /// As 0 and 1, of at most `most_bytes` bytes.
    pub(super) fn flags(self, most_bytes: u64) -> Result<Vec<u8>, String> {
        let whole = self.whole()?;
        self.convert(most_bytes, |bytes| match whole(bytes)? {
            flag @ (0 | 1) => Ok(flag as u8),
            other => Err(format!("holds {other}; allowed: 0 and 1")),
        })
    }

    /// As one text, of at most `most_bytes` bytes.
    pub(super) fn text(mut self, most_bytes: u64) -> Result<String, String> {
        if self.count != 1 {
            return Err("is not one text".into());
        }
        let size = self.element.size();
        if size as u64 > most_bytes {
            return Err(format!("has {size} bytes of text; allowed: up to {most_bytes}"));
        }
        let mut bytes = Vec::new();
        (&mut self.elements).take(size as u64).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
        self.is_whole(bytes.len() == size)?;
        let text = match self.element {
            Element::Bytes(_) => String::from_utf8(bytes).ok(),
            Element::Characters(_) => bytes
                .chunks_exact(4)
                .map(|code| char::from_u32(u32::from_le_bytes(code.try_into().ok()?)))
                .collect::<Option<String>>(),
            _ => None,
        };
        // NumPy pads with zeros.
        text.map(|text| text.trim_end_matches('\0').to_owned()).ok_or_else(|| "does not hold text".into())
    }

    fn whole(&self) -> Result<Convert, String> {
        match self.element {
            Element::Unsigned(_) => Ok(|bytes| Ok(widen(bytes, 0))),
            Element::Signed(_) => Ok(|bytes| {
                let value = signed(bytes);
                u64::try_from(value).map_err(|_| format!("holds {value}; allowed: 0 and above"))
            }),
            _ => Err("does not hold whole numbers".into()),
        }
    }

    /// All elements, read and converted a few at a time.
    fn convert<T>(mut self, most_bytes: u64, convert: impl Fn(&[u8]) -> Result<T, String>) -> Result<Vec<T>, String> {
        let (count, size) = (self.count, self.element.size());
        if count as u64 > most_bytes / BYTES_EACH {
            return Err(format!("has {count} elements; a trace may have {} more", most_bytes / BYTES_EACH));
        }
        // The capacity is exact: the length of the file and the limit have been checked.
        let mut values = Vec::with_capacity(count);
        let mut chunk = vec![0; CHUNK.min(count * size)];
        let mut left = count;
        while left > 0 {
            let now = left.min(CHUNK / size);
            let bytes = &mut chunk[..now * size];
            self.elements.read_exact(bytes).map_err(|error| unreadable(&error))?;
            for element in bytes.chunks_exact(size) {
                values.push(convert(element)?);
            }
            left -= now;
        }
        self.is_whole(true)?;
        Ok(values)
    }

    /// Refuses an array that has fewer or more elements than its header says. Reading to the end also verifies its checksum.
    fn is_whole(&mut self, has_all: bool) -> Result<(), String> {
        let more = self.elements.read(&mut [0]).map_err(|error| unreadable(&error))?;
        if has_all && more == 0 { Ok(()) } else { Err("has another length than the archive says".into()) }
    }
}

/// Converts an element to a whole number, or says why that is impossible.
type Convert = fn(&[u8]) -> Result<u64, String>;

fn unreadable(error: &std::io::Error) -> String {
    format!("cannot be read ({error})")
}

/// A little-endian number of up to 8 bytes, padded with `fill`.
fn widen(bytes: &[u8], fill: u8) -> u64 {
    let mut whole = [fill; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(whole)
}

fn signed(bytes: &[u8]) -> i64 {
    let is_negative = bytes.last().is_some_and(|&high| high >= 0x80);
    widen(bytes, if is_negative { 0xff } else { 0 }) as i64
}

/// The text after a key of the header, which is a Python dictionary on one line.
fn field<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = header.split_once(&format!("'{key}':"))?;
    Some(rest.trim_start())
}

fn unquote(text: &str) -> Option<&str> {
    Some(text.strip_prefix('\'')?.split_once('\'')?.0)
}

/// Number of elements for a shape of at most one dimension: `` or `3,`.
fn count(shape: &str) -> Option<usize> {
    match shape.trim() {
        "" => Some(1),
        shape => shape.strip_suffix(',').unwrap_or(shape).trim().parse().ok(),
    }
}
