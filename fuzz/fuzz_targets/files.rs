//! Bytes of an untrusted sender of files: frames and manifests that are read, or a reason; no path leaves the folder.
//!
//! Frames that begin by chance are rare: the beginning and, in half of the inputs, the heading of a manifest are put before the bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let mut stream = b"FARFILES\0\x01".to_vec();
    if first & 1 == 1 {
        stream.push(1);
        stream.extend((rest.len() as u32).to_be_bytes());
        stream.extend(rest);
        // The end that belongs to so many entries without content.
        stream.push(2);
        stream.extend(12_u32.to_be_bytes());
        stream.extend(u32::from(first >> 1).to_be_bytes());
        stream.extend(0_u64.to_be_bytes());
    } else {
        stream.extend(rest);
    }
    farlink_net::fuzzing::frames(&stream);
    farlink_net::fuzzing::frames(bytes);
});
