//! NumPy's array format, as far as trace files use it: numbers and text, little-endian, at most one dimension.
//!
//! <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>

/// An array as it lies in the file.
pub(super) struct Array {
    element: Element,
    bytes: Vec<u8>,
    /// Where its first element begins.
    data: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Element {
    Float(usize),
    Signed(usize),
    /// Also truth values.
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

impl Array {
    /// Takes a file apart and checks that header and length agree.
    pub(super) fn parse(bytes: Vec<u8>) -> Result<Self, String> {
        let broken = || "is not a NumPy array".to_string();
        let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or_else(broken)?;
        let (length, rest) = match rest {
            [1, 0, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
            [2, 0, a, b, c, d, rest @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest),
            [major, minor, _, _, ..] => return Err(format!("has NumPy's format {major}.{minor}; allowed: 1.0, 2.0")),
            _ => return Err(broken()),
        };
        let (header, elements) = rest.split_at_checked(length).ok_or("ends within its header")?;
        let header = std::str::from_utf8(header).map_err(|_| broken())?;

        let descriptor = field(header, "descr").and_then(unquote).ok_or("has a header without a plain descr")?;
        let element = Element::parse(descriptor)
            .ok_or_else(|| format!("holds {descriptor}; allowed: little-endian numbers of 1 to 8 bytes, and text"))?;
        let shape = field(header, "shape").and_then(|rest| rest.strip_prefix('(')?.split_once(')'));
        let count = shape.and_then(|(shape, _)| count(shape)).ok_or("has more than one dimension, or no shape")?;
        if count.checked_mul(element.size()) != Some(elements.len()) {
            return Err(format!(
                "has {} bytes of data but {count} elements of {} bytes",
                elements.len(),
                element.size()
            ));
        }
        let data = bytes.len() - elements.len();
        Ok(Array { element, bytes, data })
    }

    /// As floating-point numbers.
    pub(super) fn floats(&self) -> Result<Vec<f64>, String> {
        match self.element {
            Element::Float(4) => Ok(self.map(|bytes| f64::from(f32::from_le_bytes(bytes)))),
            Element::Float(_) => Ok(self.map(f64::from_le_bytes)),
            Element::Signed(_) => Ok(self.signed().map(|value| value as f64).collect()),
            Element::Unsigned(_) => Ok(self.unsigned().map(|value| value as f64).collect()),
            Element::Bytes(_) | Element::Characters(_) => Err("holds text, not numbers".into()),
        }
    }

    /// As whole numbers from 0 on.
    pub(super) fn integers(&self) -> Result<Vec<u64>, String> {
        match self.element {
            Element::Unsigned(_) => Ok(self.unsigned().collect()),
            Element::Signed(_) => self
                .signed()
                .map(|value| u64::try_from(value).map_err(|_| format!("holds {value}; allowed: 0 and above")))
                .collect(),
            _ => Err("does not hold whole numbers".into()),
        }
    }

    /// As one text.
    pub(super) fn text(&self) -> Result<String, String> {
        let elements = &self.bytes[self.data..];
        if elements.len() != self.element.size() {
            return Err("is not one text".into());
        }
        let text = match self.element {
            Element::Bytes(_) => String::from_utf8(elements.to_vec()).ok(),
            Element::Characters(_) => elements
                .chunks_exact(4)
                .map(|code| char::from_u32(u32::from_le_bytes(code.try_into().ok()?)))
                .collect::<Option<String>>(),
            _ => None,
        };
        // NumPy fills up with zeros.
        text.map(|text| text.trim_end_matches('\0').to_owned()).ok_or_else(|| "does not hold text".into())
    }

    fn map<const N: usize, T>(&self, convert: impl Fn([u8; N]) -> T) -> Vec<T> {
        self.bytes[self.data..].chunks_exact(N).filter_map(|chunk| chunk.try_into().ok()).map(convert).collect()
    }

    fn unsigned(&self) -> impl Iterator<Item = u64> {
        self.bytes[self.data..].chunks_exact(self.element.size()).map(|chunk| widen(chunk, 0))
    }

    fn signed(&self) -> impl Iterator<Item = i64> {
        self.bytes[self.data..].chunks_exact(self.element.size()).map(|chunk| {
            let is_negative = chunk.last().is_some_and(|&high| high >= 0x80);
            widen(chunk, if is_negative { 0xff } else { 0 }) as i64
        })
    }
}

/// A little-endian number of up to 8 bytes, filled up.
fn widen(chunk: &[u8], fill: u8) -> u64 {
    let mut bytes = [fill; 8];
    bytes[..chunk.len()].copy_from_slice(chunk);
    u64::from_le_bytes(bytes)
}

/// What follows a key of the header, a Python dictionary on one line.
fn field<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = header.split_once(&format!("'{key}':"))?;
    Some(rest.trim_start())
}

fn unquote(text: &str) -> Option<&str> {
    Some(text.strip_prefix('\'')?.split_once('\'')?.0)
}

/// Elements of a shape of at most one dimension: `` or `3,`.
fn count(shape: &str) -> Option<usize> {
    match shape.trim() {
        "" => Some(1),
        shape => shape.strip_suffix(',').unwrap_or(shape).trim().parse().ok(),
    }
}
