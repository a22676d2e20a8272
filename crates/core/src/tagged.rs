//! Enums on the wire as one object whose first field says which variant it is: `{"type":"step.passed","step":"a"}`.
//!
//! serde has that form too, but reads it by copying every value of the object before it looks at the first; a journal is
//! read whole at every start, so here the fields go straight to the variant. Only enums of unit and struct variants.

use std::fmt;

use serde::{
    de::{
        DeserializeSeed, Deserializer, EnumAccess, Error as _, IgnoredAny, MapAccess, VariantAccess, Visitor,
        value::StrDeserializer,
    },
    forward_to_deserialize_any,
    ser::{Impossible, Serialize, SerializeStruct, SerializeStructVariant, Serializer},
};

/// The field that names the variant.
const TAG: &str = "type";

/// Shows an object with a tag as the enum it stands for.
pub struct Tagged<D>(pub D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Tagged<D> {
    type Error = D::Error;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Object(visitor))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, D::Error> {
        Err(D::Error::custom("only an enum is told by its first field"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Object<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for Object<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object that begins with `{TAG}`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<V::Value, A::Error> {
        if map.next_key::<Key>()? != Some(Key::Tag) {
            return Err(A::Error::missing_field(TAG));
        }
        let tag = map.next_value::<String>()?;
        self.0.visit_enum(Variant { tag, fields: map })
    }
}

#[derive(PartialEq)]
enum Key {
    Tag,
    Other,
}

impl<'de> serde::Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a field")
            }

            fn visit_str<E>(self, name: &str) -> Result<Key, E> {
                Ok(if name == TAG { Key::Tag } else { Key::Other })
            }
        }
        deserializer.deserialize_identifier(Name)
    }
}

struct Variant<A> {
    tag: String,
    fields: A,
}

impl<'de, A: MapAccess<'de>> EnumAccess<'de> for Variant<A> {
    type Error = A::Error;
    type Variant = Fields<A>;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Fields<A>), A::Error> {
        let name: StrDeserializer<'_, A::Error> = serde::de::IntoDeserializer::into_deserializer(&*self.tag);
        Ok((seed.deserialize(name)?, Fields(self.fields)))
    }
}

struct Fields<A>(A);

impl<'de, A: MapAccess<'de>> VariantAccess<'de> for Fields<A> {
    type Error = A::Error;

    fn unit_variant(mut self) -> Result<(), A::Error> {
        while self.0.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        visitor.visit_map(self.0)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _seed: T) -> Result<T::Value, A::Error> {
        Err(A::Error::custom("no variant is a value alone"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, _visitor: V) -> Result<V::Value, A::Error> {
        Err(A::Error::custom("no variant is a list"))
    }
}

/// Writes an enum as one object, its tag first.
pub struct Tagging<S>(pub S);

/// The fields after the tag.
pub struct After<T>(T);

impl<T: SerializeStruct> SerializeStructVariant for After<T> {
    type Ok = T::Ok;
    type Error = T::Error;

    fn serialize_field<V: ?Sized + Serialize>(
        &mut self,
        key: &'static str,
        value: &V,
    ) -> Result<(), T::Error> {
        self.0.serialize_field(key, value)
    }

    fn end(self) -> Result<T::Ok, T::Error> {
        self.0.end()
    }
}

/// What is no variant with names cannot be told by a field.
fn refused<T, E: serde::ser::Error>() -> Result<T, E> {
    Err(E::custom("only unit and struct variants are told by their first field"))
}

macro_rules! refuse {
    ($($name:ident($($argument:ty),*) -> $made:ty;)*) => {
        $(fn $name(self, $(_: $argument),*) -> Result<$made, S::Error> { refused() })*
    };
}

impl<S: Serializer> Serializer for Tagging<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Impossible<S::Ok, S::Error>;
    type SerializeTuple = Impossible<S::Ok, S::Error>;
    type SerializeTupleStruct = Impossible<S::Ok, S::Error>;
    type SerializeTupleVariant = Impossible<S::Ok, S::Error>;
    type SerializeMap = Impossible<S::Ok, S::Error>;
    type SerializeStruct = Impossible<S::Ok, S::Error>;
    type SerializeStructVariant = After<S::SerializeStruct>;

    fn serialize_unit_variant(
        self,
        name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        let mut object = self.0.serialize_struct(name, 1)?;
        object.serialize_field(TAG, variant)?;
        object.end()
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        let mut object = self.0.serialize_struct(name, length + 1)?;
        object.serialize_field(TAG, variant)?;
        Ok(After(object))
    }

    fn serialize_some<T: ?Sized + Serialize>(self, _value: &T) -> Result<S::Ok, S::Error> {
        refused()
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        _name: &'static str,
        _value: &T,
    ) -> Result<S::Ok, S::Error> {
        refused()
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _value: &T,
    ) -> Result<S::Ok, S::Error> {
        refused()
    }

    refuse! {
        serialize_bool(bool) -> S::Ok;
        serialize_i8(i8) -> S::Ok;
        serialize_i16(i16) -> S::Ok;
        serialize_i32(i32) -> S::Ok;
        serialize_i64(i64) -> S::Ok;
        serialize_u8(u8) -> S::Ok;
        serialize_u16(u16) -> S::Ok;
        serialize_u32(u32) -> S::Ok;
        serialize_u64(u64) -> S::Ok;
        serialize_f32(f32) -> S::Ok;
        serialize_f64(f64) -> S::Ok;
        serialize_char(char) -> S::Ok;
        serialize_str(&str) -> S::Ok;
        serialize_bytes(&[u8]) -> S::Ok;
        serialize_none() -> S::Ok;
        serialize_unit() -> S::Ok;
        serialize_unit_struct(&'static str) -> S::Ok;
        serialize_seq(Option<usize>) -> Self::SerializeSeq;
        serialize_tuple(usize) -> Self::SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_map(Option<usize>) -> Self::SerializeMap;
        serialize_struct(&'static str, usize) -> Self::SerializeStruct;
    }
}
