//! What the receiving side has and lacks.
